"""Tables in memory and on disk: Parquet files, asked with DuckDB."""
