"""The audit: rows and facts of a job, judged by the rules that wrote them."""
