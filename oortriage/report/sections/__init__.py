"""The sections of a report, one file an idea; each turns the material into blocks, and no blocks mean no section."""
