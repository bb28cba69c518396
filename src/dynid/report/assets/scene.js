"use strict";
// The robot in three dimensions on a plain canvas: faces and segments drawn from far to near, no graphics card needed.
(() => {
  const FACES = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]];
  const EDGES = [[0, 1], [2, 3], [4, 5], [6, 7], [0, 2], [1, 3], [4, 6], [5, 7], [0, 4], [1, 5], [2, 6], [3, 7]];
  const LIGHT = normalised([0.35, -0.5, 0.8]);

  function normalised(v) {
    const length = Math.hypot(...v) || 1;
    return v.map((x) => x / length);
  }
  // A pose is [R row by row, p].
  const IDENTITY = [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0];
  const apply = (T, v) => [0, 1, 2].map((i) => T[3 * i] * v[0] + T[3 * i + 1] * v[1] + T[3 * i + 2] * v[2] + T[9 + i]);
  const turn = (T, v) => [0, 1, 2].map((i) => T[3 * i] * v[0] + T[3 * i + 1] * v[1] + T[3 * i + 2] * v[2]);
  function product(A, B) {
    const C = new Array(12);
    for (let i = 0; i < 3; i++) {
      for (let j = 0; j < 3; j++) C[3 * i + j] = A[3 * i] * B[j] + A[3 * i + 1] * B[3 + j] + A[3 * i + 2] * B[6 + j];
      C[9 + i] = A[3 * i] * B[9] + A[3 * i + 1] * B[10] + A[3 * i + 2] * B[11] + A[9 + i];
    }
    return C;
  }

  // R = M0 + cos(q) M1 + sin(q) M2,  p = P0 + cos(q) P1 + sin(q) P2 + q P3
  function local(body, q) {
    const c = Math.cos(q), s = Math.sin(q), T = new Array(12);
    for (let k = 0; k < 9; k++) T[k] = body.rotation[k] + c * body.rotation[9 + k] + s * body.rotation[18 + k];
    for (let k = 0; k < 3; k++) {
      const P = body.translation;
      T[9 + k] = P[k] + c * P[3 + k] + s * P[6 + k] + q * P[9 + k];
    }
    return T;
  }

  function poses(bodies, q) {
    const found = [];
    let driven = 0;
    for (const body of bodies) {
      const parent = body.parent < 0 ? IDENTITY : found[body.parent];
      found.push(product(parent, local(body, body.kind === "floating" ? 0 : q[driven++])));
    }
    return found;
  }

  function corners(box, pose) {
    const R = box.rotation;
    return Array.from({ length: 8 }, (_, k) => {
      const d = [k & 4 ? 1 : -1, k & 2 ? 1 : -1, k & 1 ? 1 : -1].map((sign, i) => sign * box.half[i]);
      return apply(pose, [0, 1, 2].map((i) => box.center[i] + R[3 * i] * d[0] + R[3 * i + 1] * d[1] + R[3 * i + 2] * d[2]));
    });
  }

  function mixed(colour, share, alpha) {
    const n = parseInt(colour.slice(1), 16);
    const part = (x) => Math.round(Math.max(0, Math.min(255, x * share)));
    return `rgba(${part(n >> 16)},${part((n >> 8) & 255)},${part(n & 255)},${alpha})`;
  }

  class View {
    constructor(element) {
      this.scene = report.embedded.scenes[Number(element.dataset.scene)];
      this.element = element;
      this.canvas = element.querySelector("canvas");
      this.hint = element.querySelector(".hint");
      this.words = this.hint.textContent;
      this.frames = report.array(this.scene.frames);
      this.count = this.scene.n_driven ? this.frames.length / this.scene.n_driven : 1;
      this.place();
      this.instant = this.reaching();
      this.reset();
      this.connect();
    }

    q(frame) {
      const n = this.scene.n_driven;
      return this.frames.subarray(n * frame, n * (frame + 1));
    }

    pivots(found) {
      return this.scene.bodies.map((body, i) => apply(found[i], body.pivot));
    }

    // The ball that holds joints and centres of mass of the description in all instants, and half a link more: boxes that
    // reach far beyond it are cut off rather than shrink the rest.
    place() {
      let low = [0, 0, 0], high = [0, 0, 0];
      const all = [];
      const every = Math.max(1, Math.floor(this.count / 40));
      for (let frame = 0; frame < this.count; frame += every) {
        const found = poses(this.scene.bodies, this.q(frame));
        const points = this.pivots(found);
        this.scene.bodies.forEach((body, i) => { if (body.nominal) points.push(apply(found[i], body.nominal.center)); });
        for (const point of points) {
          all.push(point);
          low = low.map((x, i) => Math.min(x, point[i]));
          high = high.map((x, i) => Math.max(x, point[i]));
        }
      }
      this.centre = low.map((x, i) => 0.5 * (x + high[i]));
      const sizes = this.scene.bodies.filter((body) => body.nominal || body.box).map((body) => Math.max(...(body.nominal || body.box).half));
      const half = sizes.sort((a, b) => a - b)[sizes.length >> 1] || 0;
      this.radius = Math.max(0.02, half + Math.max(...all.map((point) => Math.hypot(...point.map((x, i) => x - this.centre[i])))));
      this.floor = low[2];
    }

    // The first picture: the instant at which the arm is stretched out most.
    reaching() {
      let best = 0, far = -1;
      for (let frame = 0; frame < this.count; frame++) {
        const points = this.pivots(poses(this.scene.bodies, this.q(frame)));
        const end = points[points.length - 1];
        const distance = Math.hypot(end[0], end[1]) + 0.3 * end[2];
        if (distance > far) { far = distance; best = frame; }
      }
      return best;
    }

    reset() {
      this.yaw = -0.75;
      this.pitch = 0.32;
      this.zoom = 1;
      this.draw();
    }

    connect() {
      const canvas = this.canvas;
      const on = (selector, event, action) => {
        const part = this.element.querySelector(selector);
        if (part) part.addEventListener(event, action);
      };
      canvas.addEventListener("pointerdown", (event) => {
        canvas.setPointerCapture(event.pointerId);
        this.held = [event.clientX, event.clientY];
      });
      canvas.addEventListener("pointermove", (event) => {
        if (this.held) {
          this.turnBy(0.008 * (event.clientX - this.held[0]), 0.008 * (event.clientY - this.held[1]));
          this.held = [event.clientX, event.clientY];
        } else this.read(event.offsetX, event.offsetY);
      });
      for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { this.held = null; });
      canvas.addEventListener("pointerleave", () => this.say(null));
      canvas.addEventListener("wheel", (event) => {
        if (document.activeElement !== canvas && !event.ctrlKey) return; // a page scrolls on unless the view was chosen
        event.preventDefault();
        this.scale(Math.exp(-0.0015 * event.deltaY));
      }, { passive: false });
      canvas.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] }[event.key];
        if (!step) return;
        event.preventDefault();
        this.turnBy(...step);
      });
      on(".nearer", "click", () => this.scale(1.2));
      on(".farther", "click", () => this.scale(1 / 1.2));
      on(".reset", "click", () => this.reset());
      on(".nominal", "change", () => this.draw());
      on(".shape", "change", () => this.draw());
      on(".instant", "input", (event) => { this.stop(); this.show(Number(event.target.value)); });
      on(".play", "click", () => (this.playing ? this.stop() : this.play()));
      const slider = this.element.querySelector(".instant");
      if (slider) slider.value = String(this.instant);
      new ResizeObserver(() => this.draw()).observe(canvas);
      report.onTheme(() => this.draw());
    }

    turnBy(yaw, pitch) {
      this.yaw += yaw;
      this.pitch = Math.max(-1.5, Math.min(1.5, this.pitch + pitch));
      this.draw();
    }

    scale(factor) {
      this.zoom = Math.max(0.3, Math.min(8, this.zoom * factor));
      this.draw();
    }

    show(instant) {
      this.instant = instant;
      const slider = this.element.querySelector(".instant");
      if (slider) slider.value = String(instant);
      this.draw();
    }

    play() {
      if (this.instant >= this.count - 1) this.instant = 0;
      const start = performance.now(), from = this.instant;
      this.playing = true;
      this.element.querySelector(".play").textContent = "Pause";
      const step = (now) => {
        if (!this.playing) return;
        const instant = from + Math.floor((now - start) / 1000 / this.scene.frame_s);
        if (instant >= this.count - 1) { this.show(this.count - 1); this.stop(); return; }
        if (instant !== this.instant) this.show(instant);
        requestAnimationFrame(step);
      };
      requestAnimationFrame(step);
    }

    stop() {
      this.playing = false;
      const button = this.element.querySelector(".play");
      if (button) button.textContent = "Play";
    }

    project(point) {
      const [x, y, z] = point.map((value, i) => value - this.centre[i]);
      const cy = Math.cos(this.yaw), sy = Math.sin(this.yaw), cp = Math.cos(this.pitch), sp = Math.sin(this.pitch);
      const right = cy * x + sy * y, ahead = -sy * x + cy * y;
      const depth = cp * ahead - sp * z, up = sp * ahead + cp * z;
      const far = 4.2 * this.radius;
      const share = this.focus / Math.max(far + depth, 0.2 * this.radius);
      return [this.width / 2 + share * right, this.height / 2 - share * up, depth];
    }

    draw() {
      const canvas = this.canvas, ratio = Math.min(devicePixelRatio || 1, 3);
      this.width = canvas.clientWidth;
      this.height = canvas.clientHeight;
      if (!this.width) return;
      const wide = Math.round(this.width * ratio), high = Math.round(this.height * ratio);
      if (canvas.width !== wide || canvas.height !== high) { canvas.width = wide; canvas.height = high; }
      this.focus = this.zoom * 4.2 * Math.min(this.width, 1.2 * this.height) / 2;
      const context = canvas.getContext("2d");
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, this.width, this.height);
      context.lineJoin = "round";
      context.lineCap = "round";
      this.ground(context);
      this.around().sort((a, b) => b.depth - a.depth).forEach((face) => this.paint(context, face));
      const found = poses(this.scene.bodies, this.q(this.instant));
      if (this.shaped()) this.shells(found).sort((a, b) => b.depth - a.depth).forEach((face) => this.paint(context, face));
      const things = [...this.faces(found), ...this.bones(found)];
      if (this.element.querySelector(".nominal").checked) things.push(...this.outlines(found));
      things.sort((a, b) => b.depth - a.depth);
      for (const thing of things) this.paint(context, thing);
      this.painted = things.filter((thing) => thing.body !== undefined);
      this.element.dataset.drawn = "true";
    }

    ground(context) {
      const size = 1.15 * this.radius, step = size / 5;
      context.strokeStyle = report.style("line");
      context.lineWidth = 1;
      for (let k = -5; k <= 5; k++) {
        for (const [a, b] of [[[k * step, -size], [k * step, size]], [[-size, k * step], [size, k * step]]]) {
          const [x1, y1] = this.project([a[0], a[1], this.floor]), [x2, y2] = this.project([b[0], b[1], this.floor]);
          context.beginPath();
          context.moveTo(x1, y1);
          context.lineTo(x2, y2);
          context.stroke();
        }
      }
    }

    // Obstacles stand behind the robot: one sees through them.
    around() {
      const colour = report.colour("measured");
      return (this.scene.around || []).flatMap((shape) => {
        const P = shape.points, F = shape.faces, seen = [], things = [];
        for (let k = 0; k < P.length; k += 3) seen.push(this.project([P[k], P[k + 1], P[k + 2]]));
        for (let k = 0; k < F.length; k += 3) {
          const points = [seen[F[k]], seen[F[k + 1]], seen[F[k + 2]]];
          things.push({ kind: "face", points, depth: (points[0][2] + points[1][2] + points[2][2]) / 3, fill: mixed(colour, 1, 0.14), stroke: mixed(colour, 1, 0.25), width: 0.5 });
        }
        return things;
      });
    }

    shaped() {
      const box = this.element.querySelector(".shape");
      return Boolean(box && box.checked);
    }

    // The links as described, all behind the boxes, which they would hide.
    shells(found) {
      const grey = "#8a929c";
      return this.scene.bodies.flatMap((body, i) => {
        if (!body.shape) return [];
        const P = body.shape.points, F = body.shape.faces, world = [], seen = [], things = [];
        for (let k = 0; k < P.length; k += 3) {
          const point = apply(found[i], [P[k], P[k + 1], P[k + 2]]);
          world.push(point);
          seen.push(this.project(point));
        }
        for (let k = 0; k < F.length; k += 3) {
          const [a, b, c] = [F[k], F[k + 1], F[k + 2]];
          const u = world[b].map((x, n) => x - world[a][n]), v = world[c].map((x, n) => x - world[a][n]);
          const normal = normalised([u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]]);
          const light = 0.85 + 0.3 * Math.abs(normal.reduce((sum, x, n) => sum + x * LIGHT[n], 0)); // meshes wind either way
          const fill = mixed(grey, light, 0.6);
          things.push({ kind: "face", points: [seen[a], seen[b], seen[c]], depth: (seen[a][2] + seen[b][2] + seen[c][2]) / 3, fill, stroke: mixed(grey, light, 0.25), width: 0.5 });
        }
        return things;
      });
    }

    faces(found) {
      const alpha = this.shaped() ? 0.45 : 0.78; // the shape behind a box is to be seen through it
      return this.scene.bodies.flatMap((body, i) => {
        if (!body.box) return [];
        const points = corners(body.box, found[i]);
        const shown = points.map((point) => this.project(point));
        const middle = points[0].map((x, k) => 0.5 * (x + points[7][k]));
        const colour = report.colour(body.box.real ? "data" : "bad");
        return FACES.flatMap((face) => {
          const centre = [0, 1, 2].map((k) => face.reduce((sum, p) => sum + points[p][k], 0) / 4);
          const normal = normalised(centre.map((x, k) => x - middle[k]));
          const area = face.reduce((sum, p, k) => sum + shown[p][0] * shown[face[(k + 1) % 4]][1] - shown[p][1] * shown[face[(k + 1) % 4]][0], 0);
          if (area > 0) return []; // seen from behind
          const light = 0.72 + 0.38 * Math.max(0, normal.reduce((sum, x, k) => sum + x * LIGHT[k], 0));
          return [{ kind: "face", points: face.map((p) => shown[p]), depth: this.project(centre)[2], body: i,
            fill: mixed(colour, light, alpha), stroke: mixed(colour, 0.65, 1) }];
        });
      });
    }

    outlines(found) {
      const stroke = report.colour("measured");
      return this.scene.bodies.flatMap((body, i) => {
        if (!body.nominal) return [];
        const shown = corners(body.nominal, found[i]).map((point) => this.project(point));
        return EDGES.map(([a, b]) => this.segment(shown[a], shown[b], stroke, 1, [4, 3]));
      });
    }

    bones(found) {
      const points = this.pivots(found), ink = report.style("text"), accent = report.colour("predicted");
      const things = [];
      this.scene.bodies.forEach((body, i) => {
        const from = body.parent >= 0 ? points[body.parent] : [0, 0, body.kind === "floating" ? this.floor : 0];
        things.push(this.segment(this.project(from), this.project(points[i]), ink, 3));
        if (body.kind === "floating") return;
        const axis = turn(found[i], body.axis).map((x) => 0.07 * this.radius * x);
        things.push(this.segment(this.project(points[i].map((x, k) => x - axis[k])), this.project(points[i].map((x, k) => x + axis[k])), accent, 5));
      });
      return things;
    }

    segment(a, b, stroke, width, dash) {
      return { kind: "segment", points: [a, b], depth: 0.5 * (a[2] + b[2]) - 1e-4 * this.radius, stroke, width, dash: dash || [] };
    }

    paint(context, thing) {
      context.beginPath();
      thing.points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
      context.setLineDash(thing.dash || []);
      context.strokeStyle = thing.stroke;
      context.lineWidth = thing.width || 1;
      if (thing.kind === "face") {
        context.closePath();
        context.fillStyle = thing.fill;
        context.fill();
      }
      context.stroke();
      context.setLineDash([]);
    }

    read(x, y) {
      const inside = (points) => {
        let hit = false;
        for (let i = 0, j = points.length - 1; i < points.length; j = i++) {
          const [xi, yi] = points[i], [xj, yj] = points[j];
          if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) hit = !hit;
        }
        return hit;
      };
      for (let k = (this.painted || []).length - 1; k >= 0; k--) {
        if (inside(this.painted[k].points)) { this.say(this.painted[k].body); return; }
      }
      this.say(null);
    }

    say(number) {
      if (number === null) { this.hint.textContent = this.words; return; }
      const body = this.scene.bodies[number], sizes = body.box.half.map((d) => (200 * d).toFixed(1)).join(" × ");
      const before = body.nominal ? ` (description ${body.nominal.mass.toPrecision(3)} kg)` : "";
      const verdict = body.box.real ? "" : "; no physical body has its parameters, flat sides stand for negative moments";
      this.hint.textContent = `${body.link}, moved by ${body.joint}: ${body.box.mass.toPrecision(3)} kg${before}, as a uniform box ${sizes} cm${verdict}`;
    }
  }

  for (const element of document.querySelectorAll(".scene")) new View(element);
  document.documentElement.dataset.ready = "true";
})();
