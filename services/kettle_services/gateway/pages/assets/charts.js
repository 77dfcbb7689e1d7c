// Charts of what changes over time. Each says where its data is; the page has the same numbers in a table.

const COLOURS = ["#3b7dc4", "#d17c12", "#3f8f4f", "#b5479c", "#8a6d1f", "#5b5bd0", "#c0443c", "#1d8a8a"];
const DASHES = [[], [6, 3], [2, 3]]; // lines beyond the number of colours differ in these
const HEIGHT = 260;

/** Times of an axis in UTC, with the day where another one begins. */
function clock(_plot, times, _axis, _space, step) {
  return times.map((time, at) => {
    const text = new Date(time * 1000).toISOString();
    const day = text.slice(0, 10);
    if (step >= 86400) return day;
    const written = text.slice(11, step < 60 ? 19 : 16);
    const before = at ? new Date(times[at - 1] * 1000).toISOString().slice(0, 10) : "";
    return day === before ? written : `${written}\n${day}`;
  });
}

/** The colours of the page, which are others when it is dark. */
function ink(element) {
  const style = getComputedStyle(element);
  return { stroke: style.color, grid: { stroke: "rgba(128, 128, 128, .25)", width: 1 }, ticks: { stroke: "rgba(128, 128, 128, .4)" } };
}

/** Jobs of owners: a line each. */
class OwnersChart {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.place = root.querySelector("[data-plot]");
    this.choice = root.querySelector("[data-series]");
    this.choice.addEventListener("change", () => this.draw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    new MutationObserver(() => this.draw()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    new ResizeObserver(() => this.plot?.setSize({ width: this.place.clientWidth, height: HEIGHT })).observe(this.place);
    this.draw();
  }

  draw() {
    this.plot?.destroy();
    const times = this.data.times.map((time) => Date.parse(time) / 1000);
    const stepped = uPlot.paths.stepped({ align: 1 }); // jobs are counted: there is nothing between two numbers
    const lines = this.data.owners.map((owner, at) => ({
      label: owner.owner,
      stroke: COLOURS[at % COLOURS.length],
      dash: DASHES[Math.floor(at / COLOURS.length) % DASHES.length],
      width: 2,
      paths: stepped,
      points: { show: false },
    }));
    const axis = ink(this.place);
    const options = {
      width: this.place.clientWidth,
      height: HEIGHT,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1e3), "UTC"),
      scales: { y: { range: (_plot, _low, high) => [0, Math.max(1, high * 1.1)] } },
      axes: [{ ...axis, values: clock }, { ...axis, size: 60, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6] }],
      series: [{ label: "UTC", value: "{YYYY}-{MM}-{DD} {HH}:{mm}" }, ...lines],
    };
    this.plot = new uPlot(options, [times, ...this.data.owners.map((owner) => owner[this.choice.value])], this.place);
    this.root.dataset.drawn = String(lines.length);
  }
}

async function show(root) {
  try {
    const answer = await fetch(root.dataset.source, { headers: { Accept: "application/json" } });
    const data = await answer.json();
    if (!answer.ok) throw new Error(data.detail);
    root.hidden = false;
    new OwnersChart(root, data);
  } catch (error) {
    root.hidden = false;
    root.querySelector("[data-said]").textContent = `The chart cannot be drawn: ${error.message}. The table has the numbers.`;
  }
}

for (const root of document.querySelectorAll("[data-chart=owners]")) show(root);
