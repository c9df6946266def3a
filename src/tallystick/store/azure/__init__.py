"""Protocol jobs in Azure Tables: no transaction spans two partitions, so the order of writes matters."""
