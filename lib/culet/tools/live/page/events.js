// Events: which kinds are shown, and the list of those in the charts.

const MOST_LISTED = 100;

class Events {
  constructor(timeline, change) {
    this.timeline = timeline;
    this.hidden = new Set();
    this.root = document.getElementById("events");
    this.kinds = document.getElementById("kinds");
    this.change = change;
    this.known = "";
  }

  // Those of these moments that are shown, in order of time.
  in(moments) {
    const all = moments.flatMap((moment) => moment.events);
    this.offer(all);
    return all.filter((event) => !this.hidden.has(eventKind(event).key)).sort((one, other) => one.at - other.at);
  }

  // A check box for each kind that has been seen.
  offer(all) {
    const seen = [...KINDS_OF_EVENTS, OTHER_EVENT].filter((kind) => this.known.includes(`${kind.key};`) || all.some((event) => eventKind(event) === kind));
    const known = seen.map((kind) => `${kind.key};`).join("");
    if (known === this.known) return;
    this.known = known;
    this.kinds.replaceChildren(...seen.map((kind) => this.box(kind)));
  }

  box(kind) {
    const swatch = element("i");
    swatch.style.background = themed(kind);
    const toggle = () => {
      if (this.hidden.has(kind.key)) this.hidden.delete(kind.key); else this.hidden.add(kind.key);
      this.change();
    };
    return element("label", {}, element("input", { type: "checkbox", checked: !this.hidden.has(kind.key), onchange: toggle }), swatch, kind.title);
  }

  retheme() {
    this.known = "";
  }

  render(events, until) {
    const listed = events.filter((event) => event.at <= until).slice(-MOST_LISTED).reverse();
    const key = listed.map((event) => `${event.at} ${event.pid} ${event.kind}`).join();
    if (key === this.listed) return;
    this.listed = key;
    if (!listed.length) return void this.root.replaceChildren(element("tbody", {}, element("tr", {}, element("td", { className: "muted" }, "None in the window of the charts."))));
    const head = element("thead", {}, element("tr", {}, ...["Time", "PID", "Event", ""].map((title) => element("th", { scope: "col" }, title))));
    this.root.replaceChildren(head, element("tbody", {}, ...listed.map((event) => this.row(event))));
  }

  row(event) {
    const go = () => this.timeline.go(this.timeline.store.indexAt(event.at));
    return element("tr", {}, element("td", {}, element("button", { type: "button", onclick: go }, clock(event.at))), element("td", {}, known(event.pid) ? String(event.pid) : ""),
      element("td", {}, eventKind(event).key === "other" ? event.kind : event.kind.replace("_gc", " GC")), element("td", {}, this.detail(event)));
  }

  // The details of the event, and the bytes returned.
  detail(event) {
    const words = event.text === event.kind ? [] : [event.text];
    if (known(event.bytes)) words.push(`${bytesText(event.bytes)} returned`);
    return words.join(", ");
  }
}
