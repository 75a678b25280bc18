"""What people read: tables in a terminal and self-contained HTML pages."""
