-- effects: how often each effect happened, and with which token.
SELECT label, effect, count(*), max(token) FROM effects GROUP BY label, effect
