// Live estimates over server-sent events. Names come from other people's files: they are only ever set as text.
"use strict";
(() => {
  const KEPT = 600, SHOWN = 12, NS = "http://www.w3.org/2000/svg";
  const by = (id) => document.getElementById(id);
  const series = new Map(), figures = new Map();
  let latest = null;

  const number = (x, digits = 4) => (x === null || x === undefined || !Number.isFinite(x) ? "–" : Number(x).toPrecision(digits));
  const word = { "1": "identified", "0": "not excited", "-1": "dependent" };

  function tile(name, value) {
    const box = document.createElement("div"), strong = document.createElement("b"), span = document.createElement("span");
    box.className = "tile";
    strong.textContent = value;
    span.textContent = name;
    box.append(strong, span);
    return box;
  }

  function keep(report) {
    for (const [name, value] of Object.entries(report.values)) {
      if (!series.has(name)) series.set(name, []);
      const points = series.get(name);
      if (report.flags[name] === 1) points.push([report.t, value, report.sigma[name]]);
      if (points.length > KEPT) points.shift();
    }
  }

  // the newest point, and the one to compare it with: the last before the alarm's change, else after a quarter of the history
  function ends(name) {
    const points = (series.get(name) || []).filter((p) => Number.isFinite(p[2]));
    if (points.length < 8) return null;
    const since = latest && latest.alarm ? Math.min(...latest.alarm.groups.map((g) => g.since)) : NaN;
    const before = points.filter((p) => p[0] <= since);
    return [before.length ? before[before.length - 1] : points[Math.floor(points.length / 4)], points[points.length - 1]];
  }

  // that change in standard deviations of its two ends
  function change(name) {
    const pair = ends(name);
    return pair ? (pair[1][1] - pair[0][1]) / (Math.hypot(pair[0][2], pair[1][2]) || 1) : 0;
  }

  // size of that change, relative to the value before
  function size(name) {
    if (Math.abs(change(name)) < 4) return "";
    const [a, b] = ends(name);
    return `, ${b[1] > a[1] ? "+" : "−"}${Math.abs(100 * (b[1] / a[1] - 1)).toFixed(0)} % since ${a[0].toFixed(0)} s`;
  }

  function figure(name) {
    if (figures.has(name)) return figures.get(name);
    const box = document.createElement("figure"), caption = document.createElement("figcaption");
    const svg = document.createElementNS(NS, "svg");
    svg.setAttribute("viewBox", "0 0 100 100");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", name);
    const band = document.createElementNS(NS, "path"), line = document.createElementNS(NS, "path");
    band.setAttribute("class", "band");
    line.setAttribute("class", "value");
    svg.append(band, line);
    box.append(caption, svg);
    box.dataset.name = name;
    figures.set(name, { box, caption, band, line });
    return figures.get(name);
  }

  function draw(name) {
    const points = series.get(name), made = figure(name);
    const last = points[points.length - 1];
    made.caption.textContent = last ? `${name}  ${number(last[1])} ± ${number(1.96 * last[2], 2)}${size(name)}` : `${name}  not identified yet`;
    const recent = points.filter((p) => Number.isFinite(p[2]));
    if (recent.length < 2) return made.box;
    const settled = recent.slice(Math.floor(recent.length / 4));
    let low = Infinity, high = -Infinity;
    for (const [, v, s] of settled) { low = Math.min(low, v - 1.96 * s); high = Math.max(high, v + 1.96 * s); }
    const span = high - low || Math.abs(high) || 1, t0 = recent[0][0], t1 = recent[recent.length - 1][0];
    const x = (t) => (100 * (t - t0)) / (t1 - t0 || 1), clip = (y) => Math.max(0, Math.min(100, y));
    const y = (v) => clip(95 - (90 * (v - low)) / span);
    const path = (list) => list.map((p, i) => `${i ? "L" : "M"}${p[0].toFixed(2)} ${p[1].toFixed(2)}`).join("");
    made.line.setAttribute("d", path(recent.map((p) => [x(p[0]), y(p[1])])));
    const up = recent.map((p) => [x(p[0]), y(p[1] + 1.96 * p[2])]);
    const down = recent.map((p) => [x(p[0]), y(p[1] - 1.96 * p[2])]).reverse();
    made.band.setAttribute("d", path([...up, ...down]) + "Z");
    return made.box;
  }

  function show() {
    if (!latest) return;
    const r = latest, wanted = by("filter").value.trim().toLowerCase();
    const names = Object.keys(r.values).filter((name) => name.toLowerCase().includes(wanted));
    const known = names.filter((name) => r.flags[name] === 1);
    if (r.alarm) known.sort((a, b) => Math.abs(change(b)) - Math.abs(change(a)));  // what changed most comes first
    const first = (known.length ? known : names).slice(0, SHOWN);
    by("plots").replaceChildren(...first.map(draw));
    by("values").replaceChildren(...names.map((name) => {
      const row = document.createElement("tr");
      if (r.flags[name] !== 1) row.className = "unknown";
      for (const text of [name, number(r.values[name]), r.sigma[name] === null ? "–" : number(1.96 * r.sigma[name], 2), word[r.flags[name]]]) {
        const cell = document.createElement("td");
        cell.textContent = text;
        row.append(cell);
      }
      return row;
    }));
    const identified = Object.values(r.flags).filter((flag) => flag === 1).length;
    by("tiles").replaceChildren(
      tile("time of the newest row, s", r.t.toFixed(2)), tile("identified", `${identified} of ${Object.keys(r.flags).length}`),
      tile("torque left, N m or N", number(r.residual)), tile("rows", String(r.rows)), tile("lines malformed", String(r.malformed)),
      tile(`alarms, drift check: ${r.drift}`, String(r.alarms)));
    by("alarm").hidden = !r.alarm;
    by("cause").textContent = r.alarm ? r.alarm.groups.map((g) => `${g.group} since ${g.since.toFixed(1)} s`).join("; ") : "";
    document.documentElement.dataset.reports = String(Number(document.documentElement.dataset.reports || 0) + 1);
  }

  by("filter").addEventListener("input", show);
  const source = new EventSource("/events");
  source.addEventListener("robot", (event) => {
    const about = JSON.parse(event.data);
    by("robot").textContent = about.robot;
    document.title = `dynid watch: ${about.robot}`;
  });
  source.addEventListener("report", (event) => {
    latest = JSON.parse(event.data);
    keep(latest);
    by("state").textContent = latest.final ? "the stream has ended" : "watching";
    show();
  });
  source.onerror = () => { by("state").textContent = "no connection to dynid; trying again"; };
})();
