// The interactive parts of a report page. No library, nothing from a network; every word that comes from the data is
// set as text, never as markup. Dots are drawn into a pixel buffer: 100,000 of them take a few milliseconds, on any
// machine, without WebGL.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const source = JSON.parse($("data").textContent);

  // ---- the data: arrays of numbers as base64 --------------------------------------------------------------------

  const KINDS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array };
  const bytes = (text) => {
    const raw = atob(text);
    const out = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
    return out;
  };
  const typed = (packed) => packed && new KINDS[packed.kind](bytes(packed.data).buffer);
  const px = Float32Array.from(typed(source.x), (v) => v / 65535);
  const py = Float32Array.from(typed(source.y), (v) => v / 65535);
  const label = typed(source.label), second = typed(source.second), sure = typed(source.confidence);
  const rows = typed(source.rows), truth = typed(source.truth), elsewhere = typed(source.elsewhere);
  const columns = source.columns.map((c) => ({ name: c.name, values: c.numbers ? typed(c.numbers) : c.words, numeric: !!c.numbers }));
  const outlier = typed(source.outlier), names = source.names.slice();
  const n = px.length, k = source.k;
  const name = (i) => (source.ids ? source.ids[i] : String(rows ? rows[i] : i));

  const make = (tag, look = "", text = "") => {
    const element = document.createElement(tag);
    if (look) element.className = look;
    if (text !== "") element.textContent = text;
    return element;
  };

  // ---- thumbnails: sheets of small pictures side by side ---------------------------------------------------------

  const sprites = source.sprites;
  const spriteOf = new Int32Array(n).fill(-1);
  const sheets = sprites ? sprites.sheets.map(([kind, text]) => URL.createObjectURL(new Blob([bytes(text)], { type: kind }))) : [];
  if (sprites) typed(sprites.rows).forEach((row, i) => { spriteOf[row] = i; });

  const thumbnail = (i, edge) => {
    const at = spriteOf[i];
    if (at < 0) return null;
    const [width, height] = sprites.tile, scale = edge / Math.max(width, height);
    const sheet = Math.floor(at / sprites.perSheet), place = at % sprites.perSheet;
    const inSheet = Math.min(sprites.perSheet, sprites.count - sheet * sprites.perSheet);
    const lines = Math.ceil(inSheet / sprites.across);
    const element = make("span", "thumb");
    Object.assign(element.style, {
      width: `${width * scale}px`, height: `${height * scale}px`, backgroundImage: `url("${sheets[sheet]}")`,
      backgroundSize: `${sprites.across * width * scale}px ${lines * height * scale}px`,
      backgroundPosition: `${-(place % sprites.across) * width * scale}px ${-Math.floor(place / sprites.across) * height * scale}px`,
      imageRendering: width < 24 ? "pixelated" : "auto",
    });
    return element;
  };

  const largeOf = (i) => {
    const found = source.large[i];
    if (!found) return null;
    const image = make("img");
    image.alt = "";
    image.src = `data:${found[0]};base64,${found[1]}`;
    return image;
  };

  // ---- colours and shapes ----------------------------------------------------------------------------------------

  const night = matchMedia("(prefers-color-scheme: dark)");
  let dark = night.matches;
  const palette = () => (dark ? source.coloursOnDark : source.colours);
  const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const pack = ([r, g, b]) => (255 << 24 | b << 16 | g << 8 | r) >>> 0;
  const colourOf = (group) => palette()[group % palette().length];
  const shapeOf = (group) => Math.floor(group / palette().length) % SHAPES.length;

  // With more groups than colours the shape changes too. Each tells whether a point of the unit square is inside.
  const SHAPES = [
    (x, y) => x * x + y * y <= 1,
    (x, y) => Math.abs(x) <= 0.84 && Math.abs(y) <= 0.84,
    (x, y) => y <= 0.8 && y >= -1 && Math.abs(x) <= (y + 1) * 0.58,
    (x, y) => Math.abs(x) + Math.abs(y) <= 1.15,
    (x, y) => (Math.abs(x) <= 0.38 || Math.abs(y) <= 0.38) && Math.max(Math.abs(x), Math.abs(y)) <= 1.1,
  ];
  const OUTLINES = [
    "M8 2a6 6 0 1 0 .01 0z", "M3 3h10v10h-10z", "M8 2l6 11h-12z", "M8 1l7 7-7 7-7-7z", "M6 2h4v4h4v4h-4v4h-4v-4h-4v-4h4z",
  ];
  const swatch = (group, element = document.createElementNS("http://www.w3.org/2000/svg", "svg")) => {
    element.setAttribute("viewBox", "0 0 16 16");
    element.setAttribute("class", "swatch");
    element.setAttribute("aria-hidden", "true");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", OUTLINES[shapeOf(group)]);
    path.setAttribute("fill", colourOf(group));
    element.replaceChildren(path);
    return element;
  };

  // ---- what is shown: colours by mode, and which rows are lit ----------------------------------------------------

  const dots = $("dots"), marks = $("marks"), tip = $("tip"), board = $("board");
  const ink = new Uint32Array(n), shape = new Uint8Array(n), strength = new Uint8Array(n), lit = new Uint8Array(n).fill(1);
  const doubt = (t) => { // orange where unsure, blue where sure: the ramp of the legend
    const ends = (dark ? ["#ff9d5c", "#f2d06b", "#2f7fb8"] : ["#c23b00", "#e69f00", "#4a90c2"]).map(rgb);
    const at = Math.min(t, 0.9999) * 2, low = Math.floor(at);
    return ends[low].map((v, c) => Math.round(v + (ends[low + 1][c] - v) * (at - low)));
  };
  let mode = "cluster", isolated = -1, picked = null, current = -1, least = 0;

  // A column of numbers is coloured by the rank of its values, so that one extreme value does not hide the others.
  const ramp = (t) => {
    const ends = (dark ? ["#3b4cc0", "#7fb8a4", "#f7e07a"] : ["#2c2a8c", "#2a9d8f", "#e9c03a"]).map(rgb);
    const at = Math.min(t, 0.9999) * 2, low = Math.floor(at);
    return ends[low].map((v, c) => Math.round(v + (ends[low + 1][c] - v) * (at - low)));
  };
  const columnOf = (m) => (m.startsWith("column ") ? columns[Number(m.slice(7))] : null);
  const prepared = new Map();
  const prepare = (column) => {
    if (prepared.has(column)) return prepared.get(column);
    let found;
    if (column.numeric) {
      const sorted = Float32Array.from(column.values).sort(), share = new Float32Array(n);
      const rank = (v) => { let a = 0, b = n; while (a < b) { const m = (a + b) >> 1; if (sorted[m] < v) a = m + 1; else b = m; } return a; };
      const last = Math.max(1, rank(sorted[n - 1]));
      for (let i = 0; i < n; i++) share[i] = rank(column.values[i]) / last;
      found = { share, low: sorted[0], middle: sorted[n >> 1], high: sorted[n - 1] };
    } else {
      const counts = new Map();
      for (const word of column.values) counts.set(word, (counts.get(word) || 0) + 1);
      const kinds = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 19).map(([word]) => word), place = new Map(kinds.map((word, c) => [word, c]));
      found = { kinds, more: counts.size > kinds.length, group: Uint8Array.from(column.values, (word) => place.get(word) ?? 255) };
    }
    prepared.set(column, found);
    return found;
  };

  const recolour = () => {
    const groups = { cluster: label, class: truth, other: elsewhere }[mode];
    const inks = palette().map((hex) => pack(rgb(hex)));
    const shades = Array.from({ length: 256 }, (_, v) => pack(doubt(v / 255)));
    const column = columnOf(mode), facts = column && prepare(column), rare = pack(rgb(dark ? "#6b6e75" : "#b4b4bc"));
    const steps = Array.from({ length: 256 }, (_, v) => pack(ramp(v / 255)));
    const moved = [pack(rgb(dark ? "#8a8d94" : "#9a9aa2")), pack(rgb(dark ? "#ff9d5c" : "#d55e00"))];
    for (let i = 0; i < n; i++) {
      if (mode === "confidence") ink[i] = shades[sure[i]];
      else if (mode === "outlier") ink[i] = shades[255 - outlier[i]];
      else if (column) ink[i] = column.numeric ? steps[Math.round(facts.share[i] * 255)] : facts.group[i] < 255 ? inks[facts.group[i]] : rare;
      else if (mode === "moved") ink[i] = moved[elsewhere[i] === label[i] ? 0 : 1];
      else ink[i] = inks[groups[i] % inks.length];
      shape[i] = groups ? Math.floor(groups[i] / inks.length) % SHAPES.length : 0;
      strength[i] = mode === "cluster" ? 95 + (sure[i] * 160) / 255 : 235; // pale: the row could belong elsewhere
    }
  };

  const relight = () => {
    const from = least * 2.55;
    for (let i = 0; i < n; i++) lit[i] = (isolated < 0 || label[i] === isolated) && (!picked || picked[i]) && (!least || outlier[i] >= from) ? 1 : 0;
  };

  // ---- the view: what part of the map is on the screen -----------------------------------------------------------

  const view = { x: 0.5, y: 0.5, scale: 1 };
  let width = 1, height = 1, ratio = 1, whole = 1;
  const screenX = (i) => (px[i] - view.x) * view.scale + width / 2;
  const screenY = (i) => (view.y - py[i]) * view.scale + height / 2;
  const mapX = (x) => view.x + (x - width / 2) / view.scale;
  const mapY = (y) => view.y - (y - height / 2) / view.scale;
  const zoom = (factor, x = width / 2, y = height / 2) => {
    const scale = Math.min(Math.max(view.scale * factor, whole * 0.5), whole * 400);
    const fixedX = mapX(x), fixedY = mapY(y);
    view.scale = scale;
    view.x = fixedX - (x - width / 2) / scale;
    view.y = fixedY + (y - height / 2) / scale;
    repaint();
  };
  const reset = () => { Object.assign(view, { x: 0.5, y: 0.5, scale: whole }); repaint(); };
  const resize = () => {
    const before = whole;
    width = board.clientWidth, height = board.clientHeight, ratio = Math.min(devicePixelRatio || 1, 2);
    whole = Math.min(width, height) * 0.94;
    view.scale = view.scale === 1 ? whole : (view.scale * whole) / before;
    for (const canvas of [dots, marks]) Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    repaint();
  };
  const radius = () => {
    const base = Math.min(4.2, Math.max(1.1, 150 / Math.sqrt(n))) * Math.min(1, Math.max(0.6, width / 700));
    return Math.min(9, base * Math.pow(view.scale / whole, 0.4));
  };

  // ---- painting --------------------------------------------------------------------------------------------------

  const pen = dots.getContext("2d", { alpha: false }), mark = marks.getContext("2d");
  const order = new Uint32Array(n).map((_, i) => i); // shuffled: drawn row by row, the last class would hide the others
  for (let i = n - 1, seed = 1; i > 0; i--) {
    seed = (seed * 1664525 + 1013904223) >>> 0;
    const j = Math.floor((seed / 4294967296) * (i + 1)), kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
  let sorted = null; // least sure last, so that they are seen among the many that are sure
  const drawn = () => (mode === "confidence" ? (sorted ??= order.slice().sort((a, b) => sure[b] - sure[a])) : order);
  let image = null, pixels = null, stamps = null, stampKey = "", pending = false;

  // A stamp is the pixels a dot covers and how much of each, from 16 points per pixel.
  const stamp = (inside, r, line) => {
    const reach = Math.ceil(r * 1.16), found = [];
    for (let dy = -reach; dy <= reach; dy++) {
      for (let dx = -reach; dx <= reach; dx++) {
        let hits = 0;
        for (let s = 0; s < 16; s++) hits += inside((dx + ((s & 3) - 1.5) / 4) / r, (dy + ((s >> 2) - 1.5) / 4) / r);
        if (hits) found.push([dx, dy, Math.round(hits * 16)]);
      }
    }
    return {
      reach, dx: Int32Array.from(found, (f) => f[0]), dy: Int32Array.from(found, (f) => f[1]),
      offset: Int32Array.from(found, (f) => f[1] * line + f[0]), cover: Uint16Array.from(found, (f) => f[2]),
    };
  };

  const blend = (at, colour, alpha) => {
    const under = pixels[at], rest = 256 - alpha;
    const redBlue = (((under & 0xff00ff) * rest + (colour & 0xff00ff) * alpha) >>> 8) & 0xff00ff;
    const green = (((under & 0xff00) * rest + (colour & 0xff00) * alpha) >>> 8) & 0xff00;
    pixels[at] = (0xff000000 | redBlue | green) >>> 0;
  };

  const paint = () => {
    pending = false;
    const w = dots.width, h = dots.height;
    if (!w || !h) return;
    if (!image || image.width !== w || image.height !== h) {
      image = pen.createImageData(w, h);
      pixels = new Uint32Array(image.data.buffer);
      stampKey = "";
    }
    const r = Math.max(0.9, radius() * ratio), key = `${r.toFixed(2)} ${w}`;
    if (key !== stampKey) [stamps, stampKey] = [SHAPES.map((inside) => stamp(inside, r, w)), key];
    pixels.fill(pack(rgb(dark ? "#1b1c1f" : "#ffffff")));
    const unlit = pack(rgb(dark ? "#55585f" : "#c9c9d0")), all = isolated < 0 && !picked && !least;
    const scale = view.scale * ratio, left = w / 2 - view.x * scale, top = h / 2 + view.y * scale;
    const turn = drawn();
    for (let pass = all ? 1 : 0; pass < 2; pass++) {
      for (let t = 0; t < n; t++) {
        const i = turn[t];
        if (!all && lit[i] !== pass) continue;
        const x = (px[i] * scale + left + 0.5) | 0, y = (top - py[i] * scale + 0.5) | 0;
        const shown = stamps[pass ? shape[i] : 0], reach = shown.reach;
        if (x < -reach || y < -reach || x >= w + reach || y >= h + reach) continue;
        const colour = pass ? ink[i] : unlit, alpha = pass ? strength[i] : 70, inner = x >= reach && y >= reach && x < w - reach && y < h - reach;
        const at = y * w + x, { offset, cover, dx, dy } = shown;
        for (let s = 0; s < offset.length; s++) {
          if (inner || (x + dx[s] >= 0 && x + dx[s] < w && y + dy[s] >= 0 && y + dy[s] < h)) blend(at + offset[s], colour, (cover[s] * alpha) >> 8);
        }
      }
    }
    pen.putImageData(image, 0, 0);
    paintMarks();
  };
  const repaint = () => { if (!pending) { pending = true; requestAnimationFrame(paint); } };

  // Names of clusters, a ring around the current row, the lasso: cheap, so on a canvas of their own. A name that has no
  // room is shortened to its first part, then left out; zooming in makes room. Large clusters come first.
  const centres = typed(source.centres);
  const bySize = Array.from({ length: k }, (_, c) => c).sort((a, b) => source.sizes[b] - source.sizes[a]);
  const shortened = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);
  const wordings = (c) => {
    const plain = names[c].replace(/ \([+-−]?[\d.]+\)/g, ""), first = plain.split(", ")[0];
    const zoomed = view.scale / whole;
    return [...new Set([...(zoomed > 1.6 ? [shortened(names[c], 60)] : []), shortened(plain, 34), shortened(first, 20), String(c)])];
  };
  // Where rows are images and clusters have no names in words, the most typical image stands for the cluster.
  const pictures = sheets.map((address) => { const image = new Image(); image.onload = () => repaint(); image.src = address; return image; });
  const stand = (c) => {
    const at = source.exemplars[c] >= 0 && /^(like |cluster \d+$)/.test(names[c]) ? spriteOf[source.exemplars[c]] : -1;
    if (at < 0) return null;
    const sheet = pictures[Math.floor(at / sprites.perSheet)], place = at % sprites.perSheet, [w, h] = sprites.tile;
    return sheet.complete && sheet.naturalWidth ? { sheet, x: (place % sprites.across) * w, y: Math.floor(place / sprites.across) * h, w, h } : null;
  };
  const paintPicture = (c, x, y, taken) => {
    const picture = stand(c), edge = k <= 20 ? 46 : 32;
    if (!picture || taken.some(([a, b, h]) => Math.abs(a - x) < h + edge / 2 + 2 && Math.abs(b - y) < edge)) return Boolean(picture);
    taken.push([x, y, edge / 2]);
    const scale = edge / Math.max(picture.w, picture.h), w = picture.w * scale, h = picture.h * scale;
    mark.fillStyle = colourOf(c);
    mark.fillRect(x - w / 2 - 3, y - h / 2 - 3, w + 6, h + 6);
    mark.imageSmoothingEnabled = picture.w >= 24;
    mark.drawImage(picture.sheet, picture.x, picture.y, picture.w, picture.h, x - w / 2, y - h / 2, w, h);
    return true;
  };
  const paintNames = () => {
    const size = k <= 20 ? 15 : 13, taken = [];
    mark.font = `700 ${size}px system-ui, sans-serif`;
    mark.textAlign = "center";
    mark.textBaseline = "middle";
    mark.lineJoin = "round";
    for (const c of bySize) {
      if (isolated >= 0 && isolated !== c) continue;
      const x = (centres[2 * c] - view.x) * view.scale + width / 2, y = (view.y - centres[2 * c + 1]) * view.scale + height / 2;
      if (!(centres[2 * c] >= 0) || x < 0 || y < 0 || x > width || y > height) continue;
      if (sprites && paintPicture(c, x, y, taken)) continue;
      const above = y - radius() - size * 0.6; // the dot itself stays visible
      for (const text of wordings(c)) {
        const half = mark.measureText(text).width / 2 + 3, at = Math.min(Math.max(x, half + 4), width - half - 4);
        if (taken.some(([a, b, h]) => Math.abs(a - at) < h + half && Math.abs(b - above) < size * 1.2)) continue;
        taken.push([at, above, half]);
        mark.lineWidth = 4;
        mark.strokeStyle = dark ? "#1b1c1f" : "#ffffff";
        mark.strokeText(text, at, above);
        mark.fillStyle = dark ? "#ffffff" : "#111111";
        mark.fillText(text, at, above);
        break;
      }
    }
  };
  const paintMarks = () => {
    mark.setTransform(ratio, 0, 0, ratio, 0, 0);
    mark.clearRect(0, 0, width, height);
    if (mode !== "moved") paintNames();
    if (current >= 0) {
      mark.beginPath();
      mark.arc(screenX(current), screenY(current), radius() + 5, 0, 2 * Math.PI);
      mark.lineWidth = 2.5;
      mark.strokeStyle = dark ? "#ffffff" : "#111111";
      mark.stroke();
    }
    if (path) {
      mark.beginPath();
      path.forEach(([x, y], s) => (s ? mark.lineTo(x, y) : mark.moveTo(x, y)));
      mark.closePath();
      mark.fillStyle = "rgba(0, 114, 178, 0.15)";
      mark.fill();
      mark.lineWidth = 1.5;
      mark.strokeStyle = dark ? "#56b4e9" : "#0072b2";
      mark.stroke();
    }
  };

  // ---- which row is under the pointer: rows sorted into a grid of cells ------------------------------------------

  const GRID = 256;
  const cell = (x, y) => Math.min(GRID - 1, Math.max(0, (y * GRID) | 0)) * GRID + Math.min(GRID - 1, Math.max(0, (x * GRID) | 0));
  const starts = new Uint32Array(GRID * GRID + 1), filed = new Uint32Array(n);
  for (let i = 0; i < n; i++) starts[cell(px[i], py[i]) + 1]++;
  for (let c = 0; c < GRID * GRID; c++) starts[c + 1] += starts[c];
  const next = starts.slice();
  for (let i = 0; i < n; i++) filed[next[cell(px[i], py[i])]++] = i;

  const rowAt = (x, y) => {
    const reach = Math.max(10, radius() + 4) / view.scale, mx = mapX(x), my = mapY(y);
    const clamp = (v) => Math.min(GRID - 1, Math.max(0, Math.floor(v * GRID)));
    let best = -1, least = reach * reach;
    for (let cy = clamp(my - reach); cy <= clamp(my + reach); cy++) {
      for (let cx = clamp(mx - reach); cx <= clamp(mx + reach); cx++) {
        for (let s = starts[cy * GRID + cx]; s < starts[cy * GRID + cx + 1]; s++) {
          const i = filed[s], far = (px[i] - mx) ** 2 + (py[i] - my) ** 2;
          if (lit[i] && far < least) [best, least] = [i, far];
        }
      }
    }
    return best;
  };

  // ---- words about a row -----------------------------------------------------------------------------------------

  const titled = (c) => (names[c] === `cluster ${c}` ? String(c) : `${c}: ${names[c]}`);
  const number = (v) => (typeof v === "number" ? String(Number(v.toPrecision(4))) : v);
  const percent = (i) => `${Math.round((sure[i] * 100) / 255)} %`;
  const facts = (i) => {
    const found = [["cluster", titled(label[i])], ["confidence", percent(i)]];
    if (sure[i] < 250 && second[i] !== label[i]) found.push(["or else", titled(second[i])]);
    if (outlier) found.push(["outlier score", `${Math.round((outlier[i] * 100) / 255)} %`]);
    if (truth) found.push(["known class", source.classes[truth[i]]]);
    if (elsewhere) found.push(["in the other fit", elsewhere[i] < k ? `cluster ${elsewhere[i]}` : "a cluster without partner"]);
    for (const column of columns) found.push([column.name, number(column.values[i])]);
    return found;
  };
  const describe = (i, edge) => {
    const box = document.createDocumentFragment(), picture = largeOf(i) || thumbnail(i, edge);
    if (picture) box.append(picture);
    const words = make("div", "words");
    words.append(make("b", "", `row ${name(i)}`));
    const list = make("dl");
    for (const [term, value] of facts(i)) list.append(make("dt", "", term), make("dd", "", value));
    words.append(list);
    if (source.texts && source.texts[i] !== null) words.append(make("p", "text", source.texts[i]));
    box.append(words);
    return box;
  };
  const say = (text) => { $("said").textContent = text; };
  const spoken = (i) => `Row ${name(i)}: ${facts(i).map((f) => f.join(" ")).join(", ")}.`;

  const point = (i, quietly = false) => {
    if (i === current) return;
    current = i;
    tip.hidden = i < 0;
    if (i >= 0) {
      tip.replaceChildren(describe(i, 144));
      placeTip();
      if (!quietly) say(spoken(i));
    }
    paintMarks();
  };
  const placeTip = () => {
    const x = screenX(current), y = screenY(current), gap = 14, wide = tip.offsetWidth, tall = tip.offsetHeight;
    tip.style.left = `${Math.max(0, Math.min(width - wide, x + gap + wide > width ? x - gap - wide : x + gap))}px`;
    tip.style.top = `${Math.max(0, Math.min(height - tall, y + gap + tall > height ? y - gap - tall : y + gap))}px`;
  };

  // ---- isolate, select, find -------------------------------------------------------------------------------------

  const isolate = (c) => {
    isolated = c === isolated ? -1 : c;
    relight();
    for (const button of document.querySelectorAll("button[data-cluster]")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.cluster) === isolated));
    }
    say(isolated < 0 ? "All clusters are shown." : `Only ${names[isolated]} is shown.`);
    $("all").hidden = isolated < 0;
    repaint();
  };

  const MOST_SHOWN = 60;
  const tile = (i) => {
    const button = make("button", "row");
    button.type = "button";
    button.dataset.point = i;
    fill(button);
    return button;
  };
  const fill = (button) => {
    const i = Number(button.dataset.point), picture = thumbnail(i, 56);
    button.title = `row ${name(i)}, ${names[label[i]]}, confidence ${percent(i)}: show on the map`;
    if (!button.childElementCount) button.append(make("span", "id", name(i)));
    if (picture) button.prepend(picture);
  };
  const select = (chosen) => {
    picked = chosen;
    relight();
    const panel = $("picked");
    panel.replaceChildren();
    panel.hidden = !chosen;
    if (!chosen) say("");
    if (chosen) {
      const found = [], counts = new Map();
      for (let i = 0; i < n; i++) if (chosen[i]) { found.push(i); counts.set(label[i], (counts.get(label[i]) || 0) + 1); }
      const parts = [...counts].sort((a, b) => b[1] - a[1]).map(([c, many]) => `${names[c]}: ${many}`);
      const words = `${found.length} ${found.length === 1 ? "row" : "rows"} selected. ${parts.slice(0, 12).join(", ")}${parts.length > 12 ? ", …" : ""}`;
      panel.append(make("p", "", words));
      const copy = make("button", "", "Copy row ids"), clear = make("button", "", "Clear selection"), save = make("a", "button", "Save as CSV");
      copy.addEventListener("click", () => navigator.clipboard?.writeText(found.map(name).join("\n")).then(() => { copy.textContent = "Copied"; }, () => { copy.textContent = "The browser did not allow copying"; }));
      clear.addEventListener("click", () => { select(null); marks.focus(); });
      const cells = (text) => `"${String(text).replaceAll('"', '""')}"`;
      save.href = URL.createObjectURL(new Blob([`row,label,name,confidence\n${found.map((i) => `${cells(name(i))},${label[i]},${cells(names[label[i]])},${(sure[i] / 255).toFixed(3)}`).join("\n")}\n`], { type: "text/csv" }));
      save.download = "selected.csv";
      const tools = make("p", "tools"), list = make("div", "rows");
      tools.append(copy, save, clear);
      list.append(...found.slice(0, MOST_SHOWN).map(tile));
      panel.append(tools, list);
      if (found.length > MOST_SHOWN) panel.append(make("p", "quiet", `The first ${MOST_SHOWN} of ${found.length} are shown.`));
      say(words);
    }
    repaint();
  };

  const show = (i) => {
    if (!lit[i]) { isolated = -1; picked = null; select(null); isolate(-1); }
    Object.assign(view, { x: px[i], y: py[i], scale: Math.max(view.scale, whole * 3) });
    $("map").scrollIntoView({ block: "start", behavior: "smooth" });
    point(-1, true);
    repaint();
    requestAnimationFrame(() => point(i));
  };

  // Ids first, then names of clusters, texts and values: every word must be somewhere in the row.
  const haystack = (i) => {
    const words = [name(i), names[label[i]]];
    if (source.texts && source.texts[i] !== null) words.push(source.texts[i]);
    for (const column of columns) if (!column.numeric) words.push(column.values[i]);
    return words.join("\n").toLowerCase();
  };
  let piles = null;
  const find = (text) => {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    piles ??= Array.from({ length: n }, (_, i) => haystack(i));
    const words = wanted.split(/\s+/), exact = [], begins = [], holds = [];
    for (let i = 0; i < n; i++) {
      const each = name(i).toLowerCase();
      if (each === wanted) exact.push(i);
      else if (each.startsWith(wanted)) begins.push(i);
      else if (words.every((word) => piles[i].includes(word))) holds.push(i);
    }
    return [...exact, ...begins.sort((a, b) => name(a).length - name(b).length), ...holds];
  };
  const search = $("search"), matches = $("matches");
  const around = (i) => {
    const text = source.texts && source.texts[i], word = search.value.trim().toLowerCase().split(/\s+/)[0];
    if (!text) return "";
    const at = Math.max(0, text.toLowerCase().indexOf(word) - 30);
    return ` ${at ? "…" : ""}${text.slice(at, at + 90)}`;
  };
  search.addEventListener("input", () => {
    const found = find(search.value);
    matches.replaceChildren(...found.slice(0, 8).map((i) => {
      const button = make("button", "match");
      button.type = "button";
      button.append(make("b", "", name(i)), make("span", "quiet", ` ${names[label[i]]}`), make("span", "quiet", around(i)));
      button.addEventListener("click", () => { show(i); matches.replaceChildren(); });
      return button;
    }));
    if (found.length > 1) {
      const button = make("button", "match", `Select all ${found.length.toLocaleString("en")} on the map`);
      button.type = "button";
      button.addEventListener("click", () => { const chosen = new Uint8Array(n); for (const i of found) chosen[i] = 1; isolated = -1; select(chosen); matches.replaceChildren(); });
      matches.append(button);
    }
    if (search.value.trim() && !found.length) matches.append(make("p", "quiet", "No row on the map has these words."));
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); matches.querySelector("button")?.click(); }
    if (event.key === "Escape") { search.value = ""; matches.replaceChildren(); }
    if (event.key === "ArrowDown") { event.preventDefault(); matches.querySelector("button")?.focus(); }
  });
  matches.addEventListener("keydown", (event) => {
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    if (step) { event.preventDefault(); (document.activeElement[step] || search).focus(); }
  });

  const slider = $("outliers");
  if (slider) slider.addEventListener("input", () => {
    least = Number(slider.value);
    relight();
    const left = lit.reduce((a, b) => a + b, 0);
    $("outliers-shown").textContent = least ? `${left.toLocaleString("en")} ${left === 1 ? "row" : "rows"}` : "all rows";
    repaint();
  });

  // ---- names that the reader gives ---------------------------------------------------------------------------------

  const given = {};
  const rename = (c, text) => {
    const clean = text.trim().replace(/\s+/g, " ");
    if (!clean || clean === names[c]) return;
    names[c] = given[c] = clean;
    piles = null;
    for (const element of document.querySelectorAll("[data-name]")) if (Number(element.dataset.name) === c) element.textContent = clean;
    const save = $("save-names");
    if (save.href) URL.revokeObjectURL(save.href);
    save.href = URL.createObjectURL(new Blob([`${JSON.stringify({ names: Object.fromEntries(names.map((each, i) => [i, each])) }, null, 1)}\n`], { type: "application/json" }));
    save.hidden = $("names-help").hidden = false;
    relabel();
    paintMarks();
    say(`Cluster ${c} is now called ${clean}.`);
  };
  const editName = (button) => {
    const c = Number(button.dataset.rename), title = button.parentElement.querySelector("[data-name]"), input = make("input", "rename");
    input.value = names[c];
    input.setAttribute("aria-label", `Name of cluster ${c}`);
    title.hidden = button.hidden = true;
    title.after(input);
    input.focus();
    input.select();
    let open = true;
    const close = (keep) => { if (!open) return; open = false; input.remove(); title.hidden = button.hidden = false; if (keep) rename(c, input.value); button.focus(); };
    input.addEventListener("keydown", (event) => { if (event.key === "Enter") close(true); if (event.key === "Escape") close(false); });
    input.addEventListener("blur", () => close(true));
  };

  // ---- large images: point at a thumbnail --------------------------------------------------------------------------

  let shownLarge = null;
  const enlarge = (button) => {
    shownLarge?.remove();
    shownLarge = null;
    const picture = button && (largeOf(Number(button.dataset.point)) || thumbnail(Number(button.dataset.point), 160));
    if (!picture) return;
    const box = button.getBoundingClientRect();
    shownLarge = make("div");
    shownLarge.id = "large";
    shownLarge.append(picture);
    document.body.append(shownLarge);
    const wide = 240, tall = 240;
    shownLarge.style.left = `${Math.max(4, Math.min(innerWidth - wide, box.right + 8))}px`;
    shownLarge.style.top = `${Math.max(4, Math.min(innerHeight - tall, box.top - 60))}px`;
  };
  for (const [on, off] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
    document.addEventListener(on, (event) => { const button = event.target.closest?.("button.row[data-point]"); if (button) enlarge(button); });
    document.addEventListener(off, (event) => { if (event.target.closest?.("button.row[data-point]")) enlarge(null); });
  }

  // ---- pointer and keyboard --------------------------------------------------------------------------------------

  let path = null, lassoing = false, dragged = false;
  const pointers = new Map();
  const where = (event) => {
    const box = marks.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const inside = (polygon, x, y) => {
    let odd = false;
    for (let a = 0, b = polygon.length - 1; a < polygon.length; b = a++) {
      const [xa, ya] = polygon[a], [xb, yb] = polygon[b];
      if (ya > y !== yb > y && x < ((xb - xa) * (y - ya)) / (yb - ya) + xa) odd = !odd;
    }
    return odd;
  };
  const closeLasso = () => {
    const polygon = path.map(([x, y]) => [mapX(x), mapY(y)]), chosen = new Uint8Array(n);
    path = null;
    let any = false;
    if (polygon.length > 2) {
      for (let i = 0; i < n; i++) if ((isolated < 0 || label[i] === isolated) && inside(polygon, px[i], py[i])) any = chosen[i] = 1;
    }
    select(any ? chosen : null);
  };
  const setLasso = (on) => {
    lassoing = on;
    $("lasso").setAttribute("aria-pressed", String(on));
    $("move").setAttribute("aria-pressed", String(!on));
    marks.classList.toggle("lassoing", on);
  };

  marks.addEventListener("pointerdown", (event) => {
    marks.focus({ preventScroll: true });
    try { marks.setPointerCapture(event.pointerId); } catch { /* a pointer that is already gone */ }
    pointers.set(event.pointerId, where(event));
    dragged = pointers.size > 1;
    path = (lassoing || event.shiftKey) && pointers.size === 1 ? [where(event)] : null;
  });
  marks.addEventListener("pointermove", (event) => {
    const here = where(event), before = pointers.get(event.pointerId);
    if (!before) { point(rowAt(...here)); return; }
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const gap = (p) => Math.max(20, Math.hypot(p[0] - other[0], p[1] - other[1]));
      zoom(gap(here) / gap(before), (here[0] + other[0]) / 2, (here[1] + other[1]) / 2);
    } else if (path) {
      path.push(here);
      paintMarks();
    } else {
      if (!dragged && Math.hypot(here[0] - before[0], here[1] - before[1]) < 4) return;
      dragged = true;
      point(-1, true);
      view.x -= (here[0] - before[0]) / view.scale;
      view.y += (here[1] - before[1]) / view.scale;
      repaint();
    }
    pointers.set(event.pointerId, here);
  });
  const release = (event) => {
    const known = pointers.delete(event.pointerId);
    if (!known || pointers.size) return;
    if (path && path.length > 2) closeLasso();
    else if (!dragged && event.type === "pointerup") {
      path = null;
      const i = rowAt(...where(event));
      point(i);
      if (i >= 0) isolate(isolated === label[i] ? -1 : label[i]);
      else if (isolated >= 0) isolate(-1);
    }
    path = null;
    paintMarks();
  };
  marks.addEventListener("pointerup", release);
  marks.addEventListener("pointercancel", release);
  marks.addEventListener("pointerleave", () => { if (!pointers.size) point(-1, true); });
  marks.addEventListener("wheel", (event) => {
    if (document.activeElement !== marks && !event.ctrlKey) return; // a page that scrolls must not get stuck here
    event.preventDefault();
    point(-1, true);
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0018)), ...where(event));
  }, { passive: false });

  const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const walk = ([dx, dy]) => {
    const x = current >= 0 ? screenX(current) : width / 2, y = current >= 0 ? screenY(current) : height / 2;
    let best = -1, least = Infinity;
    for (let i = 0; i < n; i++) {
      if (!lit[i] || i === current) continue;
      const ahead = (screenX(i) - x) * dx + (screenY(i) - y) * dy, aside = Math.abs((screenX(i) - x) * dy - (screenY(i) - y) * dx);
      if (ahead > 0 && aside <= ahead && ahead + aside < least) [best, least] = [i, ahead + aside];
    }
    if (best < 0) return;
    if (screenX(best) < 0 || screenY(best) < 0 || screenX(best) > width || screenY(best) > height) {
      Object.assign(view, { x: px[best], y: py[best] });
      repaint();
    }
    point(best);
  };
  marks.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = STEPS[event.key], pan = (0.15 * Math.min(width, height)) / view.scale;
    if (step && event.shiftKey) { view.x += step[0] * pan; view.y -= step[1] * pan; point(-1, true); repaint(); }
    else if (step) walk(step);
    else if (event.key === "+" || event.key === "=") zoom(1.4);
    else if (event.key === "-") zoom(1 / 1.4);
    else if (event.key === "0") reset();
    else if (event.key === "Enter" && current >= 0) isolate(label[current]);
    else if (event.key === "Escape") { select(null); if (isolated >= 0) isolate(-1); point(-1); }
    else if (event.key === "l") setLasso(!lassoing);
    else return;
    event.preventDefault();
  });

  for (const [id, act] of Object.entries({
    in: () => zoom(1.5), out: () => zoom(1 / 1.5), whole: reset, move: () => setLasso(false), lasso: () => setLasso(true),
    all: () => { select(null); if (isolated >= 0) isolate(-1); },
  })) $(id).addEventListener("click", act);
  document.addEventListener("click", (event) => {
    const row = event.target.closest("button[data-point]"), cluster = event.target.closest("button[data-cluster]"), naming = event.target.closest("button[data-rename]");
    if (naming) editName(naming);
    else if (row) show(Number(row.dataset.point));
    else if (cluster) {
      isolate(Number(cluster.dataset.cluster));
      if (!cluster.closest("#map")) $("map").scrollIntoView({ block: "start", behavior: "smooth" });
    }
  });

  // ---- legend ----------------------------------------------------------------------------------------------------

  const legend = $("legend"), sizes = source.sizes;
  const entry = (group, text, tag) => {
    const element = make(tag, "entry");
    element.append(swatch(group), make("span", "", text));
    return element;
  };
  const LEGENDS = {
    cluster: () => sizes.map((size, c) => {
      const button = entry(c, shortened(titled(c), 40), "button");
      button.title = names[c];
      button.type = "button";
      button.dataset.cluster = c;
      button.setAttribute("aria-pressed", String(c === isolated));
      button.append(make("span", "quiet", size.toLocaleString("en")));
      button.setAttribute("aria-label", `${titled(c)}, ${size} rows: show only this one`);
      return button;
    }),
    confidence: () => {
      const ends = make("span", "ends quiet");
      ends.append(make("span", "", "unsure"), make("span", "", "sure"));
      return [make("span", "ramp"), ends];
    },
    outlier: () => {
      const ends = make("span", "ends quiet");
      ends.append(make("span", "", "outlier"), make("span", "", "usual"));
      return [make("span", "ramp"), ends];
    },
    class: () => source.classes.map((each, c) => entry(c, each, "span")),
    moved: () => [make("span", "stay", "same cluster in both fits"), make("span", "go", "moved to another cluster")],
  };
  const columnLegend = (column) => {
    const facts = prepare(column);
    if (!column.numeric) return [...facts.kinds.map((word, c) => entry(c, word, "span")), ...(facts.more ? [make("span", "quiet", "grey: other values")] : [])];
    const bar = make("span", "ramp"), ends = make("span", "ends quiet"), stops = [0, 0.5, 1].map((t) => `rgb(${ramp(t).join(",")})`);
    bar.style.setProperty("background", `linear-gradient(90deg, ${stops.join(", ")})`, "important");
    ends.append(make("span", "", number(facts.low)), make("span", "", `median ${number(facts.middle)}`), make("span", "", number(facts.high)));
    return [bar, ends];
  };
  const relabel = () => {
    const column = columnOf(mode);
    legend.classList.toggle("named", names.some((each, c) => each !== `cluster ${c}`));
    legend.replaceChildren(...(column ? columnLegend(column) : LEGENDS[mode]()));
    $("legend-title").textContent = column ? column.name : { cluster: "Cluster and its rows; click to see it alone", confidence: "Confidence", outlier: "Outlier score", class: "Known class", moved: "Compared with the other fit" }[mode];
  };
  $("colour").addEventListener("change", (event) => { mode = event.target.value; recolour(); relabel(); repaint(); });

  // ---- the rest of the page: thumbnails, swatches, tables that sort themselves out -------------------------------

  const decorate = () => {
    for (const element of document.querySelectorAll("svg[data-group]")) swatch(Number(element.dataset.group), element);
    for (const element of document.querySelectorAll("[data-fill]")) element.style.backgroundColor = colourOf(Number(element.dataset.fill));
    for (const element of document.querySelectorAll("svg [data-band]")) element.setAttribute("fill", colourOf(Number(element.dataset.band)));
  };
  const light = (to) => { dark = to; recolour(); relabel(); decorate(); paint(); };
  night.addEventListener("change", () => light(night.matches));
  const opened = [];
  addEventListener("beforeprint", () => { // paper is white and has no buttons to press
    for (const each of document.querySelectorAll("details:not([open])")) { opened.push(each); each.open = true; }
    light(false);
    // Chromium prints a canvas by drawing it again, and a cleared part comes out white: print a picture of both instead.
    const both = Object.assign(make("canvas"), { width: dots.width, height: dots.height }), brush = both.getContext("2d");
    for (const canvas of [dots, marks]) brush.drawImage(canvas, 0, 0);
    $("print").src = both.toDataURL();
  });
  addEventListener("afterprint", () => { while (opened.length) opened.pop().open = false; light(night.matches); });

  recolour();
  relabel();
  decorate();
  new ResizeObserver(resize).observe(board);
  resize();
  setTimeout(() => document.querySelectorAll("main button[data-point]").forEach(fill)); // after the first paint
  // For tests and the curious: where a row is on the screen, what is shown, how long a frame takes.
  window.report = Object.freeze({
    place: (i) => [screenX(i), screenY(i)],
    state: () => ({ n, current, isolated, picked: picked ? picked.reduce((a, b) => a + b, 0) : 0, scale: view.scale / whole, x: view.x, y: view.y }),
    frame: () => { const began = performance.now(); paint(); return performance.now() - began; },
  });
})();
