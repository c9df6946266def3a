-- picture_protocols: the protocol jobs among these, as decisions read them.
-- takes: jobs list
SELECT @names(ProtocolJob) FROM jobs WHERE job_id IN :jobs AND kind = 'protocol'
