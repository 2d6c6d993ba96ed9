"""Lambda handlers for everything but HTTP: queues, the table's stream, schedules, commands for the key ring."""
