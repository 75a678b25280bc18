"""What people read: tables in a terminal, files of numbers, and a self-contained HTML page.

The public function `swsdask.report` writes such a page; this package is named otherwise so as not to hide it.
"""
