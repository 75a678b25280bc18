"""Files of detections: NIST's XML, tables, Kaldi's and TREC's results, Parquet."""
