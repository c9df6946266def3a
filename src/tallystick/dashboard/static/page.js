// What pages do by themselves: charts, graphs, saved views, a few keys. Without it every page and form still works.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const make = (name, about, parent) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(about)) made.setAttribute(key, value);
    parent.append(made);
    return made;
  };

  // A chart of columns that stand on each other: what ended in each span of time.
  const KINDS = { SUCCEEDED: "good", FAILED_FINAL: "bad", CANCELLED: "off" };
  function drawChart(figure) {
    const { times, names, lines } = JSON.parse(figure.dataset.chart);
    const stacked = names.map((_, at) => times.map((_, x) => lines.slice(0, at + 1).reduce((sum, line) => sum + line[x], 0)));
    const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 } };
    const series = [...names.keys()].reverse().map((at) => ({
      label: names[at], stroke: colour(KINDS[names[at]]), fill: colour(KINDS[names[at]]), width: 0, points: { show: false },
      paths: uPlot.paths.bars({ size: [0.8, 28], align: 1 }),
    }));
    const days = times.at(-1) - times[0] > 86400;
    const clock = (seconds) => new Date(seconds * 1000).toISOString().slice(days ? 5 : 11, 16).replace("T", " ");
    const wide = () => Math.max(240, figure.clientWidth);
    const options = {
      width: wide(), height: 190, legend: { show: false }, cursor: { show: false }, series: [{}, ...series], axes: [{ ...axis, values: (_, ticks) => ticks.map(clock) }, { ...axis, size: 46, values: (_, ticks) => ticks.map((tick) => (tick % 1 ? "" : tick)) }],
      scales: { y: { range: (_, __, most) => [0, Math.max(4, most * 1.1)] } }, tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    };
    figure.replaceChildren();
    const chart = new uPlot(options, [times, ...[...stacked].reverse()], figure);
    new ResizeObserver(() => figure.isConnected && chart.setSize({ width: wide(), height: 190 })).observe(figure);
  }

  // A line that is bent at its inner points.
  function curve([first, ...rest]) {
    const last = rest.pop();
    const bends = rest.map((point, at) => { const next = rest[at + 1] || last; return `Q${point} ${(point[0] + next[0]) / 2},${(point[1] + next[1]) / 2}`; });
    return `M${first} ${bends.join(" ")} L${last}`;
  }

  // Boxes and arrows, laid out by dagre; all text is set as text.
  function drawGraph(figure) {
    const { nodes, edges } = JSON.parse(figure.dataset.graph);
    const graph = new dagre.graphlib.Graph({ multigraph: true });
    graph.setGraph({ rankdir: nodes.length > 24 || innerWidth < 760 ? "TB" : "LR", nodesep: 22, ranksep: 46, marginx: 8, marginy: 8 });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const node of nodes) {
      const longest = Math.max(node.label.length * 7.6, (node.sub || "").length * 6.2);
      graph.setNode(node.id, { ...node, width: Math.min(260, Math.max(96, longest + 26)), height: node.sub ? 44 : 32 });
    }
    // An arrow that comes back to its own box is a line in the box.
    for (const [from, to, label] of edges) if (from === to) { const node = graph.node(from); Object.assign(node, { sub: `↺ ${label}`, height: 44 }); }
    edges.filter(([from, to]) => from !== to).forEach(([from, to, label, walked], at) => graph.setEdge(from, to, { label: label || "", walked, width: (label || "").length * 6, height: label ? 14 : 0, labelpos: "c" }, String(at)));
    dagre.layout(graph);
    const { width, height } = graph.graph();
    const svg = make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "presentation" }, document.createDocumentFragment());
    const marker = make("marker", { id: "tip", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, make("defs", {}, svg));
    make("path", { d: "M0,0 L8,4 L0,8 z", class: "tip" }, marker);
    for (const name of graph.edges()) {
      const edge = graph.edge(name);
      const path = curve(edge.points.map(({ x, y }) => [Number(x.toFixed(1)), Number(y.toFixed(1))]));
      make("path", { d: path, class: `edge${edge.walked ? " walked" : ""}`, "marker-end": "url(#tip)" }, svg);
      if (edge.label) make("text", { x: edge.x, y: edge.y + 4, class: "edge-label" }, svg).textContent = edge.label;
    }
    for (const id of graph.nodes()) {
      const node = graph.node(id);
      const group = make("g", { class: `node ${node.kind}${node.self ? " self" : ""}${node.open ? " open" : ""}`, transform: `translate(${node.x},${node.y})` }, svg);
      const inside = node.href ? make("a", { href: node.href }, group) : group;
      make("rect", { x: -node.width / 2, y: -node.height / 2, width: node.width, height: node.height, rx: 9 }, inside);
      make("text", { y: node.sub ? -2 : 5 }, inside).textContent = node.label.length > 32 ? `${node.label.slice(0, 31)}…` : node.label;
      if (node.sub) make("text", { y: 14, class: "sub" }, inside).textContent = node.sub;
    }
    figure.replaceChildren(svg);
    follow(figure, nodes, graph);
  }

  // A drawing that is too large shows the box at which the job is now: the step that began last and is open, or a child, or the job.
  // When it is drawn again, and the job is still there, it stays where its reader has moved it.
  const followed = { id: null, left: 0, top: 0 };
  function follow(figure, nodes, graph) {
    const open = nodes.filter((node) => node.open && !node.self && !node.above);
    const now = open.findLast((node) => !node.href) ?? open[0] ?? nodes.find((node) => node.self);
    if (!now) return;
    const { x, y } = graph.node(now.id);
    if (followed.id !== now.id) Object.assign(followed, { id: now.id, left: x - figure.clientWidth / 2, top: y - figure.clientHeight / 2 });
    figure.scrollTo(followed.left, followed.top);
    figure.addEventListener("scroll", () => Object.assign(followed, { left: figure.scrollLeft, top: figure.scrollTop }));
  }

  // On a phone the rows of a table stand below each other; each cell knows the head of its column, and all of it is still a table.
  function stack(table) {
    const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
    table.classList.add("stacked");
    table.setAttribute("role", "table");
    for (const row of table.querySelectorAll("tr")) {
      row.setAttribute("role", "row");
      [...row.cells].forEach((cell, at) => {
        cell.setAttribute("role", cell.tagName === "TH" ? "columnheader" : "cell");
        if (cell.tagName === "TD" && heads[at] && cell.colSpan === 1) cell.dataset.label = heads[at];
      });
    }
  }

  function draw() {
    for (const table of document.querySelectorAll("table.list:not(.stacked)")) stack(table);
    for (const figure of document.querySelectorAll("[data-chart]:not([data-drawn])")) { figure.dataset.drawn = "yes"; drawChart(figure); }
    for (const figure of document.querySelectorAll("[data-graph]:not([data-drawn])")) { figure.dataset.drawn = "yes"; drawGraph(figure); }
  }
  function drawAgain() {
    for (const figure of document.querySelectorAll("[data-drawn]")) delete figure.dataset.drawn;
    draw();
  }

  // Saved views are addresses with names, kept in this browser.
  const VIEWS = "tallystick.views";
  const saved = () => { try { return JSON.parse(localStorage.getItem(VIEWS)) || {}; } catch { return {}; } };
  function showViews() {
    const place = document.getElementById("views");
    if (!place) return;
    place.replaceChildren();
    for (const [name, query] of Object.entries(saved())) {
      const link = Object.assign(document.createElement("a"), { className: "button small", href: `${place.dataset.base}${query}`, textContent: name });
      const drop = Object.assign(document.createElement("button"), { className: "button small quiet", type: "button", textContent: "×" });
      drop.setAttribute("aria-label", `Forget the view ${name}`);
      drop.addEventListener("click", () => { const views = saved(); delete views[name]; localStorage.setItem(VIEWS, JSON.stringify(views)); showViews(); });
      place.append(link, drop);
    }
  }
  function saveView() {
    const name = prompt("A name for this view");
    if (!name) return;
    localStorage.setItem(VIEWS, JSON.stringify({ ...saved(), [name.slice(0, 40)]: location.search }));
    showViews();
  }

  // While a person types, or has opened something, the parts are left as they are.
  const isBusy = () => {
    const at = document.activeElement;
    return Boolean(document.querySelector("main details.act[open]")) || Boolean(at && at.closest("main") && at.matches("input, select, textarea"));
  };
  // Browsers open few connections to a host: a tab that is hidden gives its own back. One that is shown again connects anew and
  // asks for its parts; it is never loaded again, so that an open sheet and what was typed stay.
  let given = null;
  function look() {
    const live = document.getElementById("live");
    if (document.visibilityState === "hidden" && live) {
      given = live.cloneNode(true);
      live.remove();
      htmx.trigger(live, "htmx:beforeCleanupElement");
      document.getElementById("dot")?.classList.remove("on");
    } else if (document.visibilityState === "visible" && !live && given) {
      document.body.append(given);
      htmx.process(given);
      htmx.trigger("#pulse", "sse:change");
    }
  }

  // A menu that is wider than a phone shows where one is.
  function showCurrent() {
    for (const entry of document.querySelectorAll(":is(.side, .tabs) [aria-current]")) {
      const row = entry.closest(".side, .tabs");
      const [at, all] = [entry.getBoundingClientRect(), row.getBoundingClientRect()];
      row.scrollLeft += at.left - all.left - (all.width - at.width) / 2;
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    draw();
    showCurrent();
    showViews();
    document.getElementById("save-view")?.addEventListener("click", saveView);
    for (const name of ["htmx:beforeRequest", "htmx:beforeSwap"]) document.body.addEventListener(name, (event) => { if (event.target.id === "pulse" && isBusy()) event.preventDefault(); });
    for (const name of ["htmx:oobAfterSwap", "htmx:afterSettle"]) document.body.addEventListener(name, draw);
    document.body.addEventListener("htmx:sseOpen", () => document.getElementById("dot")?.classList.add("on"));
    document.body.addEventListener("htmx:sseError", () => document.getElementById("dot")?.classList.remove("on"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAgain);
  });
  document.addEventListener("visibilitychange", look);
  document.addEventListener("toggle", (event) => {
    if (!event.target.matches?.("details.act[open]")) return;
    for (const other of document.querySelectorAll("details.act[open]")) if (other !== event.target) other.open = false;
    event.target.querySelector("input:not([type=hidden]), select, button")?.focus();
  }, true);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      const open = document.querySelector("details.act[open]");
      if (open) { open.open = false; open.querySelector("summary").focus(); }
    }
    if (event.ctrlKey || event.metaKey || event.altKey || document.activeElement?.matches("input, select, textarea")) return;
    if (event.key === "/") { event.preventDefault(); document.getElementById("find")?.focus(); }
    const rows = [...document.querySelectorAll(".list tbody .strong")];
    if (["j", "k"].includes(event.key) && rows.length) {
      const at = rows.indexOf(document.activeElement);
      rows[Math.max(0, Math.min(rows.length - 1, event.key === "j" ? at + 1 : at - 1))].focus();
    }
  });
})();
