"""Output: tables in a terminal, files of numbers, and self-contained HTML pages.

The package is not named `report`, since it would shadow the public function `swsdask.report`.
"""
