-- picture_protocol_steps: the remote steps of these protocol jobs, in their order.
-- takes: jobs list
SELECT @names(ProtocolStep) FROM steps WHERE job_id IN :jobs AND kind = 'protocol' ORDER BY job_id, step_index
