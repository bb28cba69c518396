"use strict";
// Figures drawn with plotly when they come into view, again when the page's width or colours change.
(() => {
  const coarse = matchMedia("(pointer: coarse)");
  const drawn = new Map();

  // Plotly reads markup in its texts; names from files are shown as they are.
  const text = (value) => String(value).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const shortened = (value, most) => value.length > most ? value.slice(0, most - 1) + "…" : value;
  const rangeOf = (axis) => axis.log ? axis.range.map(Math.log10) : axis.range;

  function trace(curve, panel, number, first) {
    const colour = report.colour(curve.role);
    const result = {
      x: report.array(curve.x), y: report.array(curve.y), name: text(curve.name), legendgroup: curve.name, showlegend: first,
      xaxis: "x" + number, yaxis: "y" + number, type: "scatter",
    };
    const places = panel.y.categories;
    if (curve.kind === "line") {
      result.mode = "lines";
      result.line = { color: colour, width: curve.width, dash: curve.dashed ? "dash" : "solid" };
    } else if (curve.kind === "points") {
      result.mode = "markers";
      result.marker = { color: colour, size: curve.width, opacity: curve.width > 4 ? 1 : 0.7 };
    } else {
      result.type = "bar";
      result.marker = { color: colour };
      if (curve.kind === "rows") { result.orientation = "h"; result.width = 0.66; }
      if (curve.bar) result.width = curve.bar;
    }
    if (curve.spread !== undefined) {
      result.error_y = { type: "data", array: report.array(curve.spread), color: colour, thickness: 1, width: 0 };
    }
    if (curve.texts) {
      result.customdata = curve.texts.map(text);
      result.hovertemplate = "%{customdata}<extra></extra>";
    } else if (places) {
      result.customdata = Array.from(report.array(curve.y), (place) => text(places[Math.round(place)]));
      result.hovertemplate = "%{customdata}: %{x:.4g}";
    }
    return result;
  }

  // What the curves and lines of a figure stand for, each once.
  function named(figure) {
    const found = new Map();
    for (const panel of figure.panels) {
      for (const item of [...panel.curves, ...panel.marks]) {
        if (item.name && !found.has(item.name)) found.set(item.name, { role: item.role, kind: item.kind || "mark" });
      }
    }
    return found;
  }

  function build(figure, width, hidden = new Set(), legend = false) {
    const strips = figure.arrangement === "strips";
    const narrow = width < 520;
    const names = figure.panels.flatMap((panel) => panel.y.categories || []);
    const most = narrow ? 14 : 26;
    const label = names.length ? 7 * Math.min(most, Math.max(...names.map((name) => name.length))) + 12 : 0;
    const least = narrow ? 150 : 240;
    const columns = strips ? 1 : Math.max(1, Math.min(figure.columns, figure.panels.length, Math.floor(width / least)));
    const rows = Math.ceil(figure.panels.length / columns);
    const left = Math.max(label, 46), right = 10, bottom = 40;
    const gapX = Math.max(label, narrow ? 36 : 48), gapY = strips ? 22 : names.length || !narrow ? 46 : 40;
    const titled = figure.panels.some((panel) => panel.title || panel.y.title);
    const top = 26 + (legend ? 20 : 0) + (titled ? 18 : 0);
    const heights = Array.from({ length: rows }, (_, row) => {
      const count = Math.max(...figure.panels.slice(row * columns, (row + 1) * columns)
        .map((panel) => (panel.y.categories || []).length));
      return count ? 17 * count + 8 : Math.round(figure.panel_height * (narrow && !strips ? 0.8 : 1));
    });
    const places = Array.from({ length: rows }, (_, row) => Math.max(...figure.panels.slice(row * columns, (row + 1) * columns)
      .map((panel) => (panel.y.categories || []).length)));
    const inner = heights.reduce((sum, height) => sum + height, 0) + (rows - 1) * gapY;
    const across = width - left - right;
    const panelWidth = (across - (columns - 1) * gapX) / columns;
    const ink = report.style("text"), soft = report.style("soft"), grid = report.style("grid"), line = report.style("line");
    const font = { family: getComputedStyle(document.body).fontFamily, size: 11, color: soft };
    const layout = {
      width, height: top + inner + bottom, margin: { l: left, r: right, t: top, b: bottom, pad: 0 }, font,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: legend, uirevision: "kept", barmode: "overlay",
      hovermode: strips ? "x unified" : "closest", dragmode: coarse.matches ? false : "zoom", shapes: [], annotations: [],
      hoverlabel: { bgcolor: report.style("card"), bordercolor: line, font: { ...font, color: ink } },
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1 + (titled ? 22 : 4) / inner, yanchor: "bottom", font: { ...font, size: 12 }, itemsizing: "constant",
        bgcolor: "rgba(0,0,0,0)" },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: soft, activecolor: report.style("accent"), orientation: "h" },
    };
    const traces = [];
    const seen = new Set();
    let offset = 0;
    figure.panels.forEach((panel, index) => {
      const row = Math.floor(index / columns), column = index % columns;
      if (column === 0 && row > 0) offset += heights[row - 1] + gapY;
      const number = index === 0 ? "" : String(index + 1);
      const lowest = index + columns >= figure.panels.length, last = !strips || lowest;
      const x0 = column * (panelWidth + gapX) / across;
      const y1 = 1 - offset / inner;
      const common = { gridcolor: grid, zeroline: false, linecolor: line, showline: true, mirror: true, tickfont: font,
        hoverformat: ".4~g", ticks: "", automargin: false };
      layout["xaxis" + number] = { ...common, domain: [x0, x0 + panelWidth / across], anchor: "y" + number,
        type: panel.x.log ? "log" : "linear", range: rangeOf(panel.x), nticks: Math.max(4, Math.floor(panelWidth / 55)),
        showticklabels: last, title: { text: lowest ? text(panel.x.title) : "", standoff: 6, font },
        ...(strips && index > 0 ? { matches: "x" } : {}), ...(panel.x.log ? { dtick: decades(panel.x.range, panelWidth) } : {}) };
      const names = panel.y.categories;
      layout["yaxis" + number] = { ...common, domain: [Math.max(0, y1 - heights[row] / inner), y1], anchor: "x" + number,
        type: panel.y.log ? "log" : "linear", range: names ? [places[row] - 0.4, -0.6] : rangeOf(panel.y),
        nticks: Math.max(3, Math.floor(heights[row] / 30)),
        ...(names ? { tickvals: names.map((_, i) => i), ticktext: names.map((name) => text(shortened(name, most))),
          fixedrange: true, showgrid: false } : {}),
        ...(panel.y.log ? { dtick: decades(panel.y.range, 2 * heights[row]),
          tickformat: panel.y.range[0] > 9e-4 && panel.y.range[1] < 2e5 ? "~g" : ".0e" } : {}) };
      if (panel.title) {
        const room = Math.floor((panelWidth - 6 * panel.y.title.length) / 7.5);
        layout.annotations.push({ text: "<b>" + text(shortened(panel.title, room)) + "</b>", showarrow: false, xref: "paper", yref: "paper",
          x: x0, y: y1, xshift: -2, xanchor: "left", yanchor: "bottom", font: { ...font, size: 12, color: ink } });
      }
      if (panel.y.title) {
        layout.annotations.push({ text: text(panel.y.title), showarrow: false, xref: "paper", yref: "paper",
          x: x0 + panelWidth / across, y: y1, xanchor: "right", yanchor: "bottom", font });
      }
      for (const mark of panel.marks) {
        if (hidden.has(mark.name)) continue;
        const along = mark.along === "x";
        layout.shapes.push({ type: "line", layer: "below", line: { color: report.colour(mark.role), width: 1, dash: "dash" },
          xref: along ? "x" + number : "x" + number + " domain", yref: along ? "y" + number + " domain" : "y" + number,
          x0: along ? mark.value : 0, x1: along ? mark.value : 1, y0: along ? 0 : mark.value, y1: along ? 1 : mark.value,
          name: text(mark.name), legendgroup: mark.name, showlegend: !seen.has(mark.name) && Boolean(mark.name) });
        seen.add(mark.name);
      }
      for (const curve of panel.curves) {
        if (hidden.has(curve.name)) continue;
        traces.push(trace(curve, panel, number, !seen.has(curve.name)));
        seen.add(curve.name);
      }
    });
    return { traces, layout };
  }

  function decades(range, pixels) {
    const span = Math.log10(range[1] / range[0]);
    return span < 2.2 && pixels > 200 ? "D2" : Math.max(1, Math.ceil(span / Math.max(2, pixels / 60)));
  }

  function savePicture(format) {
    return (graph) => {
      const element = graph.closest("figure"), name = element.dataset.figure;
      const { traces, layout } = build(report.embedded.figures[name], graph.layout.width, hiddenOf(element), true);
      const [shown, paper] = [graph.layout, report.style("card")];
      for (const key of Object.keys(layout)) {
        if (/^[xy]axis/.test(key)) layout[key].range = shown[key].range.slice(); // as far as it was zoomed
      }
      return Plotly.downloadImage({ data: traces, layout: { ...layout, paper_bgcolor: paper, plot_bgcolor: paper } },
        { format, filename: name, width: layout.width, height: layout.height, scale: format === "png" ? 3 : 1 });
    };
  }

  const hiddenOf = (element) => new Set([...element.querySelectorAll('.legend [aria-pressed="false"]')].map((button) => button.value));

  // A legend of buttons: each hides and shows what it names in every panel.
  function addLegend(element) {
    const names = named(report.embedded.figures[element.dataset.figure]);
    if (names.size < 2) return;
    const legend = document.createElement("div");
    legend.className = "legend";
    for (const [name, { role, kind }] of names) {
      const button = document.createElement("button");
      button.type = "button";
      button.value = name;
      button.setAttribute("aria-pressed", "true");
      const sign = document.createElement("i");
      sign.className = kind;
      sign.dataset.role = role;
      button.append(sign, name);
      button.addEventListener("click", () => {
        button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") === "false"));
        draw(element);
      });
      legend.append(button);
    }
    element.prepend(legend);
  }

  function draw(element) {
    for (const sign of element.querySelectorAll(".legend i")) sign.style.color = report.colour(sign.dataset.role);
    const drawing = element.querySelector(".drawing");
    const width = Math.floor(drawing.clientWidth);
    if (width < 50) return;
    const { traces, layout } = build(report.embedded.figures[element.dataset.figure], width, hiddenOf(element));
    const config = {
      displaylogo: false, responsive: false, showTips: false, doubleClick: "reset", displayModeBar: coarse.matches ? true : "hover",
      modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"].slice(coarse.matches ? 2 : 0), [
        { name: "Save as PNG", icon: Plotly.Icons.camera, click: savePicture("png") },
        { name: "Save as SVG", icon: Plotly.Icons.disk, click: savePicture("svg") }]],
    };
    Plotly.react(drawing, traces, layout, config).then(() => { element.dataset.drawn = "true"; });
    drawing.style.minHeight = layout.height + "px";
    drawn.set(element, width);
  }

  const elements = [...document.querySelectorAll("figure.plot")];
  const nearby = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting && !drawn.has(entry.target)) draw(entry.target);
    }
  }, { rootMargin: "600px 0px" });
  const sized = new ResizeObserver((entries) => {
    for (const entry of entries) {
      const element = entry.target;
      if (drawn.has(element) && Math.abs(drawn.get(element) - Math.floor(element.querySelector(".drawing").clientWidth)) > 1) draw(element);
    }
  });
  for (const element of elements) {
    addLegend(element);
    const width = element.closest("section").clientWidth - 40;
    const { layout } = build(report.embedded.figures[element.dataset.figure], width);
    element.querySelector(".drawing").style.minHeight = layout.height + "px"; // the page keeps its length while figures appear
    nearby.observe(element);
    sized.observe(element);
  }
  const redraw = () => { for (const element of drawn.keys()) draw(element); };
  report.onTheme(redraw);
  coarse.addEventListener("change", redraw);
  addEventListener("beforeprint", () => { for (const element of elements) draw(element); });
})();
