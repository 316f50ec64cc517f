-- A publication FOR ALL TABLES lets no row be deleted that nothing identifies.
ALTER TABLE @schema@.chunk_part REPLICA IDENTITY FULL;
