"""A shop on an embedded Postgres, to see Tailrace at work without your own database."""
