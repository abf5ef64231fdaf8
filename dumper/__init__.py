"""The dumper: a process of its own that moves records from the ring into the database."""
