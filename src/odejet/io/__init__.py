"""Files in and out: each module knows one format."""
