"""The dumper: a process of its own that moves what is in the ring into the database."""
