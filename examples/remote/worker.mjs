// A remote worker without packages: node worker.mjs URL KEY SERVICE
import { setTimeout as sleep } from "node:timers/promises";
const [url, key, service] = process.argv.slice(2);
const pull = `/v1/directives?service=${service}&worker=js-${process.pid}&wait=20&max=`;
const [most, busy, known] = [4, new Set(), new Set()]; // known: a directive may come twice, and is done once

async function count({ text, ms = 0 }, signal) { // the work; it ends early when the signal says so
  return sleep(ms, { words: text.split(/\s+/).length, by: "javascript" }, { signal });
}

async function call(method, path, bearer, body) {
  const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" };
  for (;; await sleep(500)) {
    const sent = fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
    const answer = await sent.catch((broken) => console.error(`no answer: ${broken.message}`));
    if (answer && answer.status < 500 && answer.status !== 429) return answer; // anything else is said again
  }
}

async function work({ jobId, stepId, attempt_no, lease_id, token, payload }, stop = new AbortController()) {
  const report = async (what, said) => {
    const answer = await call("POST", `/v1/callbacks/${what}`, token, { jobId, stepId, attempt_no, lease_id, ...said });
    const heard = answer.status === 401 ? {} : await answer.json();
    token = heard.token ?? token; // a fresh one, good as long as the lease
    if (!answer.ok || heard.cancelling) stop.abort(); // the attempt is over, or the job is to end
    return heard;
  };
  const { lease_ms } = await report("ack");
  if (!lease_ms) return; // the attempt is over
  const beat = setInterval(() => report("heartbeat"), Math.min(lease_ms / 3, 60_000));
  const done = (value) => ({ status: "SUCCEEDED", value });
  const failed = ({ name, message }) => ({ status: "FAILED", failure_class: "NON_RETRYABLE", error: { code: name, message } });
  await report("result", await count(payload, stop.signal).then(done, failed)).finally(() => clearInterval(beat));
}

for (;;) {
  if (busy.size >= most) await Promise.race(busy); // the others go on
  const answer = await call("GET", pull + (most - busy.size), key);
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  for (const directive of (await answer.json()).directives.filter(({ outbox_id }) => !known.has(outbox_id))) {
    if (known.add(directive.outbox_id).size > 1_000) known.delete(known.values().next().value);
    const task = work(directive).catch(console.error).finally(() => busy.delete(task));
    busy.add(task);
  }
}
