-- picture_undelivered: the steps of these protocol jobs whose directives are not out.
-- takes: jobs list
SELECT @names(ProtocolStep)
  FROM steps @indexed(steps_open)
 WHERE job_id IN :jobs AND completed_at IS NULL AND kind = 'protocol' AND state = 'DISPATCHING'
