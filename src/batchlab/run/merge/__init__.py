"""Labs of one sweep that were filled on several machines, joined into one."""
