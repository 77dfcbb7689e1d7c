// The map of machines: one canvas, one cell for each machine, coloured by what somebody wants to see.
//
// What it shows comes from the list beside the canvas and from REST; the page is complete without it, because the
// table below has the same machines.

const GAP = 1;
const LEAST = 6; // pixels of a cell with its gap: smaller ones can neither be hit nor told apart
const MOST = 30;
const LETTERED = 16; // from this size on a cell has room for its letter
const SHADES = ["#e8eef5", "#c3d8ee", "#93bbe0", "#5b98cd", "#2f74b0", "#164d80"];
const KINDS = ["#3b7dc4", "#d17c12", "#3f8f4f", "#b5479c", "#8a6d1f", "#5b5bd0", "#c0443c", "#1d8a8a"];
const STATES = {
  busy: ["all cores claimed", "B", "#2f6fb3"],
  partly: ["some cores claimed", "P", "#7fb0e0"],
  free: ["unclaimed", "F", "#4d9a5b"],
  owner: ["owner is there", "O", "#8b8f98"],
  drained: ["draining or drained", "D", "#c9781c"],
  backfill: ["backfill", "K", "#8a63b8"],
};
const AGES = [
  [60, "less than a minute"],
  [600, "less than 10 minutes"],
  [3600, "less than an hour"],
  [86400, "less than a day"],
  [604800, "less than a week"],
  [Infinity, "a week or longer"],
];

/** How long something has lasted, in the two largest units. */
function lasted(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = units.findIndex(([size]) => seconds >= size);
  if (first < 0) return "0 s";
  const [size, unit] = units[first];
  const rest = units[first + 1];
  const left = rest ? Math.floor((seconds % size) / rest[0]) : 0;
  return `${Math.floor(seconds / size)} ${unit}` + (left ? ` ${left} ${rest[1]}` : "");
}

/** Classes of machines in the order of the legend: what each is called, its colour and letter, and who is in it. */
const COLOURINGS = {
  state(data) {
    const classes = data.states.map((name) => {
      const [label, letter, colour] = STATES[name];
      return { label, letter, colour };
    });
    return [classes, data.state];
  },
  owner(data) {
    return named(data.owners, data.owner, "nobody");
  },
  arch(data) {
    return named(data.arches, data.arch, "unknown");
  },
  used(data) {
    const labels = ["none", "up to a quarter", "up to half", "up to three quarters", "less than all", "all"];
    const classes = labels.map((label, at) => ({ label, letter: String(at), colour: SHADES[at] }));
    const of = data.used.map((used, at) => {
      const part = data.cores[at] ? used / data.cores[at] : 0;
      return part <= 0 ? 0 : part >= 1 ? 5 : Math.min(4, Math.ceil(part * 4));
    });
    return [classes, of];
  },
  age(data) {
    const classes = AGES.map(([, label], at) => ({ label, letter: String(at), colour: SHADES[at] }));
    return [classes, data.since.map((since) => AGES.findIndex(([limit]) => data.at - since < limit))];
  },
};

/** One class for each of the most frequent names; the others are one class together. */
function named(names, of, none) {
  const counts = names.map(() => 0);
  for (const at of of) counts[at] += 1;
  const ranked = names.map((_, at) => at).filter((at) => names[at] !== "");
  ranked.sort((a, b) => counts[b] - counts[a] || (names[a] < names[b] ? -1 : 1));
  const classes = [];
  const place = new Map();
  ranked.forEach((at, rank) => {
    if (rank < KINDS.length) {
      place.set(at, classes.length);
      classes.push({ label: names[at], letter: names[at].slice(0, 1).toUpperCase(), colour: KINDS[rank] });
    }
  });
  if (ranked.length > KINDS.length) {
    const others = classes.length;
    ranked.slice(KINDS.length).forEach((at) => place.set(at, others));
    classes.push({ label: `${ranked.length - KINDS.length} others`, letter: "…", colour: "#8b8f98" });
  }
  const nobody = classes.length;
  if (names.includes("")) classes.push({ label: none, letter: "", colour: "#c9ced6" });
  return [classes, of.map((at) => place.get(at) ?? nobody)];
}

/** White or black, whichever can be read on a colour. */
function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
  return 0.299 * r + 0.587 * g + 0.114 * b > 0.55 ? "#111" : "#fff";
}

class MachineMap {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.canvas = root.querySelector("canvas");
    this.legend = root.querySelector("[data-legend]");
    this.said = root.querySelector("[data-said]");
    this.by = root.querySelector("[name=colour]");
    this.order = root.querySelector("[name=arrange]");
    this.at = -1; // position of the cell that the keyboard or the pointer is on
    this.shown = new Set(); // classes that are not dimmed; empty: all are shown
    for (const choice of [this.by, this.order]) choice.addEventListener("change", () => this.changed());
    this.canvas.addEventListener("pointermove", (event) => this.pointed(event));
    this.canvas.addEventListener("pointerleave", () => this.point(-1));
    this.canvas.addEventListener("click", (event) => {
      this.pointed(event);
      this.open();
    });
    this.canvas.addEventListener("keydown", (event) => this.pressed(event));
    this.canvas.addEventListener("focus", () => this.point(this.at < 0 ? 0 : this.at));
    this.canvas.addEventListener("blur", () => this.point(-1));
    new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    new MutationObserver(() => this.draw()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    this.classify();
  }

  /** Somebody wants other colours or another order: the address says so too, so that it can be passed on. */
  changed() {
    const address = new URL(location.href);
    for (const choice of [this.by, this.order]) address.searchParams.set(choice.name, choice.value);
    history.replaceState(history.state, "", address);
    this.shown.clear();
    this.classify();
  }

  classify() {
    [this.classes, this.of] = COLOURINGS[this.by.value](this.data);
    this.counts = this.classes.map(() => 0);
    for (const each of this.of) this.counts[each] += 1;
    this.cells = this.data.names.map((_, at) => at);
    if (this.order.value === "colour") this.cells.sort((a, b) => this.of[a] - this.of[b] || a - b);
    this.at = -1;
    this.explain();
    this.draw();
  }

  /** The legend: a button for each class that has machines, which dims the others. */
  explain() {
    this.legend.replaceChildren();
    this.classes.forEach((each, at) => {
      if (!this.counts[at]) return;
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "false");
      const swatch = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      swatch.setAttribute("viewBox", "0 0 16 16");
      swatch.setAttribute("aria-hidden", "true");
      const square = document.createElementNS(swatch.namespaceURI, "rect");
      for (const [name, value] of Object.entries({ width: 16, height: 16, rx: 3, fill: each.colour }))
        square.setAttribute(name, value);
      const letter = document.createElementNS(swatch.namespaceURI, "text");
      letter.textContent = each.letter;
      for (const [name, value] of Object.entries({ x: 8, y: 12, "text-anchor": "middle", fill: inkOn(each.colour) }))
        letter.setAttribute(name, value);
      swatch.append(square, letter);
      const count = document.createElement("b");
      count.textContent = this.counts[at].toLocaleString("en");
      button.append(swatch, ` ${each.label} `, count);
      button.addEventListener("click", () => {
        const wanted = !this.shown.delete(at);
        if (wanted) this.shown.add(at);
        button.setAttribute("aria-pressed", String(wanted));
        this.draw();
      });
      const item = document.createElement("li");
      item.append(button);
      this.legend.append(item);
    });
  }

  /** Cells as large as they may be so that the map is not higher than two thirds of its width. */
  measure() {
    const width = Math.max(60, this.canvas.parentElement.clientWidth);
    const count = Math.max(1, this.cells.length);
    this.cell = Math.max(LEAST, Math.min(MOST, Math.floor(Math.sqrt((width * width * 0.5) / count))));
    this.columns = Math.max(1, Math.floor(width / this.cell));
    this.rows = Math.ceil(count / this.columns);
    return [this.columns * this.cell, this.rows * this.cell];
  }

  draw() {
    performance.mark("map-begin");
    const [width, height] = this.measure();
    const scale = devicePixelRatio || 1;
    this.canvas.width = width * scale;
    this.canvas.height = height * scale;
    this.canvas.style.setProperty("width", `${width}px`);
    this.canvas.style.setProperty("height", `${height}px`);
    const pen = this.canvas.getContext("2d");
    pen.scale(scale, scale);
    const size = this.cell - GAP;
    this.classes.forEach((each, kind) => {
      pen.globalAlpha = this.shown.size && !this.shown.has(kind) ? 0.15 : 1;
      pen.fillStyle = each.colour;
      this.cells.forEach((machine, at) => {
        if (this.of[machine] === kind) pen.fillRect(...this.corner(at), size, size);
      });
      if (this.cell < LETTERED) return;
      pen.fillStyle = inkOn(each.colour);
      pen.font = `600 ${Math.floor(size * 0.55)}px system-ui, sans-serif`;
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      this.cells.forEach((machine, at) => {
        if (this.of[machine] !== kind) return;
        const [x, y] = this.corner(at);
        pen.fillText(each.letter, x + size / 2, y + size / 2 + 1);
      });
    });
    pen.globalAlpha = 1;
    if (this.at >= 0) {
      const [x, y] = this.corner(this.at);
      pen.lineWidth = 2;
      pen.strokeStyle = getComputedStyle(this.canvas).color;
      pen.strokeRect(x, y, size, size);
    }
    performance.measure("map-draw", "map-begin");
    this.root.dataset.drawn = String(this.cells.length);
  }

  corner(at) {
    return [(at % this.columns) * this.cell, Math.floor(at / this.columns) * this.cell];
  }

  /** What is said of a machine: everything that its colour could mean. */
  sentence(machine) {
    const data = this.data;
    const owner = data.owners[data.owner[machine]];
    const parts = [
      data.names[machine],
      STATES[data.states[data.state[machine]]][0],
      `${data.used[machine]} of ${data.cores[machine]} cores in use`,
    ];
    if (owner) parts.push(`most of them by ${owner}`);
    parts.push(`for ${lasted(Math.max(0, data.at - data.since[machine]))}`);
    parts.push(data.arches[data.arch[machine]] || "unknown architecture");
    return parts.join(" · ");
  }

  pointed(event) {
    const place = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - place.left) / this.cell);
    const row = Math.floor((event.clientY - place.top) / this.cell);
    const at = row * this.columns + column;
    this.point(column >= 0 && column < this.columns && row >= 0 && at < this.cells.length ? at : -1);
  }

  point(at) {
    if (at === this.at) return;
    this.at = at;
    const machine = this.cells[at];
    this.canvas.style.setProperty("cursor", machine === undefined ? "default" : "pointer");
    this.said.textContent = machine === undefined ? "" : this.sentence(machine);
    this.draw();
  }

  pressed(event) {
    const last = this.cells.length - 1;
    const at = Math.max(0, this.at);
    const steps = {
      ArrowLeft: at - 1,
      ArrowRight: at + 1,
      ArrowUp: at - this.columns,
      ArrowDown: at + this.columns,
      PageUp: at - 10 * this.columns,
      PageDown: at + 10 * this.columns,
      Home: 0,
      End: last,
    };
    if (event.key === "Enter") this.open();
    else if (event.key in steps) this.point(Math.min(last, Math.max(0, steps[event.key])));
    else return;
    event.preventDefault();
  }

  open() {
    const machine = this.cells[this.at];
    if (machine !== undefined)
      location.assign(this.root.dataset.machine + encodeURIComponent(this.data.names[machine]));
  }
}

/** Draw the map in an element that names where its data is. */
async function show(root) {
  const said = root.querySelector("[data-said]");
  try {
    const answer = await fetch(root.dataset.source, { headers: { Accept: "application/json" } });
    const data = await answer.json();
    if (!answer.ok) throw new Error(data.detail);
    root.hidden = false;
    new MachineMap(root, { ...data, at: Date.parse(data.at) / 1000 });
  } catch (error) {
    root.hidden = false;
    said.textContent = `The map cannot be drawn: ${error.message}. The table below has the machines.`;
  }
}

for (const root of document.querySelectorAll("[data-machine-map]")) show(root);
