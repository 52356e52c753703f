"""Whether a lab is sound: every file looked at, what is damaged set aside and made again, edits accepted."""
