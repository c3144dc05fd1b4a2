"""What a kernel's name and a device tell: tables of facts with their sources; knows no file."""
