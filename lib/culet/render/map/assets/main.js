// Builds the page. `culetMap` gives other scripts the view, the panel and the player.

const PLAY_MILLISECONDS = 700;

async function load(number) {
  const facts = await unpackJson(`facts-${number}`);
  const [planes, blocks, slots] = [await unpack(`cells-${number}`), await unpack(`blocks-${number}`), await unpack(`slots-${number}`)];
  return new Picture(facts, planes, new Blocks(blocks, slots));
}

class Player {
  // Steps through a series of snapshots, or plays it.
  constructor(root, count, show) {
    this.count = count;
    this.show = show;
    this.number = 0;
    this.slider = root.querySelector("input[type=range]");
    this.button = root.querySelector("button");
    root.hidden = count < 2;
    this.slider.max = count - 1;
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    this.button.addEventListener("click", () => (this.timer ? this.stop() : this.play()));
  }

  async go(number) {
    this.number = number;
    this.slider.value = number;
    await this.show(number);
  }

  async play() {
    this.button.textContent = "stop";
    if (this.number === this.count - 1) await this.go(0);
    const step = async () => {
      await this.go(this.number + 1);
      if (this.number < this.count - 1) this.timer = setTimeout(step, PLAY_MILLISECONDS); else this.stop();
    };
    this.timer = setTimeout(step, PLAY_MILLISECONDS);
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = null;
    this.button.textContent = "play";
  }
}

async function start() {
  const picture = await load(0);
  const canvas = document.querySelector("canvas");
  const view = new View(canvas, picture);
  const panel = new Panel(document.querySelector("aside"), view);
  const pointer = new Pointer(view, new Tip(document.getElementById("tip")));
  const bar = document.getElementById("bar");
  const actions = { in: () => view.zoom(ZOOM_STEP), out: () => view.zoom(1 / ZOOM_STEP), whole: () => view.whole() };
  bar.querySelectorAll("[data-zoom]").forEach((button) => button.addEventListener("click", actions[button.dataset.zoom]));
  document.querySelectorAll("[name=mapped]").forEach((radio) => radio.addEventListener("change", () => panel.choose({ mapped: radio.value })));
  document.getElementById("compare").addEventListener("change", (event) => panel.choose({ changes: event.target.checked }));
  document.getElementById("by-sharing").addEventListener("change", (event) => panel.choose({ sharing: event.target.checked }));
  const show = async (number) => {
    const next = number === 0 ? picture : await load(number);
    view.show(next);
    panel.show(next);
    canvas.setAttribute("aria-label", `Memory map of ${next.facts.subject}`);
    document.getElementById("frame").textContent = next.facts.caption || next.facts.moment;
  };
  const count = document.querySelectorAll("[id^=facts-]").length;
  const player = new Player(document.getElementById("player"), count, show);
  await player.go(0);
  if (document.documentElement.dataset.open === "changes") {
    document.getElementById("compare").checked = panel.filter.changes = true;
    await player.go(count - 1);
  }
  DARK.addEventListener("change", () => {
    picture.theme();
    view.retheme();
    panel.show(view.picture);
  });
  new ResizeObserver(() => view.resize()).observe(canvas);
  window.culetMap = { view, panel, pointer, player };
  view.draw();
}

startPage("map", "map", start);
