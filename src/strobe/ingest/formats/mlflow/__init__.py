"""MLflow: runs in a folder of files (`mlruns`), and in an SQLite database (`mlflow.db`)."""
