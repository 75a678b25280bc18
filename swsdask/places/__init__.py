"""Files at paths and fsspec URLs: one reader, one writer, and the options of stores."""
