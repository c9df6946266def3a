-- integrity: one row, 'ok': the server looks after its files itself, and nobody cuts its power here.
SELECT 'ok'
