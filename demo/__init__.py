"""A shop on an embedded Postgres, to see Tailrace at work without a database of one's own."""
