// A remote worker without packages: node worker.mjs URL KEY SERVICE
const [url, key, service] = process.argv.slice(2);
const pull = `/v1/directives?service=${service}&worker=js-${process.pid}&wait=20&max=4`;
const known = new Set(); // a directive may come twice; it is done once

async function count({ text }) { // the work
  return { words: text.split(/\s+/).length, by: "javascript" };
}

async function call(method, path, bearer, body) {
  const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" };
  for (;;) {
    const sent = fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
    const answer = await sent.catch((broken) => console.error(`no answer: ${broken.message}`));
    if (answer && answer.status < 500 && answer.status !== 429) return answer; // anything else is said again
    await new Promise((resume) => setTimeout(resume, 500));
  }
}

async function work({ jobId, stepId, attempt_no, lease_id, token, payload }) {
  const report = async (what, said) => {
    const body = { jobId, stepId, attempt_no, lease_id, ...said };
    const answer = await call("POST", `/v1/callbacks/${what}`, token, body);
    const heard = answer.status === 401 ? {} : await answer.json();
    token = heard.token ?? token; // a fresh one, good as long as the lease
    return answer.ok ? heard : null; // null: the attempt is over, stop
  };
  const begun = await report("ack", { status: "ACKED" });
  if (!begun) return;
  const beat = setInterval(() => report("heartbeat"), Math.min(begun.lease_ms / 3, 60_000));
  const done = (value) => ({ status: "SUCCEEDED", value });
  const error = ({ name, message }) => ({ error: { code: name, message }, failure_class: "NON_RETRYABLE" });
  const failed = (thrown) => ({ status: "FAILED", ...error(thrown) });
  await report("result", await count(payload).then(done, failed));
  clearInterval(beat);
}

for (;;) {
  const answer = await call("GET", pull, key);
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  const { directives } = await answer.json();
  await Promise.all(directives.filter(({ outbox_id }) => !known.has(outbox_id) && known.add(outbox_id)).map(work));
}
