"""What every room of views shares: the payload, mounting, tables and files, code generation, the theme."""
