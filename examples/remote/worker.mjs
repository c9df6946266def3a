// A remote worker without packages: node worker.mjs URL KEY SERVICE
const [url, key, service] = process.argv.slice(2);
const worker = `js-${process.pid}`;
const known = new Set(); // a directive may come twice; it is done once

async function call(method, path, bearer, body) {
  for (let pause = 100; ; pause = Math.min(pause * 2, 10_000)) {
    try {
      const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" };
      const answer = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
      if (answer.status < 500 && answer.status !== 429) return answer; // anything else is said again
    } catch (broken) {
      console.error(`no answer: ${broken.message}`);
    }
    await new Promise((resume) => setTimeout(resume, pause));
  }
}

async function work(directive) {
  const { jobId, stepId, attempt_no, lease_id } = directive;
  const fence = { jobId, stepId, attempt_no, lease_id };
  const report = async (what, said = {}) => {
    const answer = await call("POST", `/v1/callbacks/${what}`, directive.token, { ...fence, ...said });
    const heard = answer.status === 401 ? {} : await answer.json();
    directive.token = heard.token ?? directive.token; // a fresh one, good as long as the lease
    return answer.ok ? heard : null; // null: the attempt is over, stop
  };
  const begun = await report("ack", { status: "ACKED" });
  if (!begun) return;
  const beat = setInterval(() => report("heartbeat"), Math.min(begun.lease_ms / 3, 60_000));
  try {
    const value = { words: directive.payload.text.split(/\s+/).length, by: "javascript" }; // the work
    await report("result", { status: "SUCCEEDED", value });
  } catch (error) {
    const failure = { code: error.name, message: error.message };
    await report("result", { status: "FAILED", failure_class: "NON_RETRYABLE", error: failure });
  } finally {
    clearInterval(beat);
  }
}

for (;;) {
  const answer = await call("GET", `/v1/directives?service=${service}&worker=${worker}&wait=20&max=4`, key);
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  const { directives } = await answer.json();
  const fresh = directives.filter(({ outbox_id }) => !known.has(outbox_id) && known.add(outbox_id));
  await Promise.all(fresh.map(work));
}
