"""One evaluation, on any fsspec URL or in memory: tables, immutable fragments, a committed manifest, and cells."""
