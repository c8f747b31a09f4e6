"""How Loupe is served, on two floors: `library`, `classes` and `lti` below the pages, `http` above them."""
