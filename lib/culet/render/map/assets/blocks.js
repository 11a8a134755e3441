// malloc blocks and Ruby slots inside pages, by address.

const BLOCK_STATES = ["used", "free", "cached", "overhead"];
const BLOCK_WORDS = { used: "in use", free: "free", cached: "free, in a thread's cache", overhead: "metadata or padding",
  live: "a live object", vacant: "a free slot" };
const BLOCK_UNIT = 16;

// The blocks of a region; offsets from its start in units of 16 bytes.
class BlockList {
  constructor(start, bytes, at, end) {
    this.start = start;
    const numbers = new Varints(bytes, at, end);
    const first = numbers.next();
    let count = 0;
    for (let index = numbers.at; index < end; index++) if (bytes[index] < 128) count++;
    // The first block may be misaligned relative to the region's start.
    this.shift = first % BLOCK_UNIT;
    this.offsets = new Uint32Array(count + 1);
    this.states = new Uint8Array(count);
    let offset = (first - this.shift) / BLOCK_UNIT;
    for (let index = 0; index < count; index++) {
      const word = numbers.next();
      this.offsets[index] = offset;
      this.states[index] = word & 3;
      offset += Math.floor(word / 4);
    }
    this.offsets[count] = offset;
  }

  get size() { return this.states.length; }

  address(index) { return this.start + this.shift + this.offsets[index] * BLOCK_UNIT; }

  // Index of the block that contains an address; -1: none.
  find(address) {
    const offset = (address - this.start - this.shift) / BLOCK_UNIT;
    if (offset < 0 || offset >= this.offsets[this.size]) return -1;
    return lastNotAbove(this.offsets, offset, this.size);
  }

  block(index) {
    return { address: this.address(index), bytes: this.address(index + 1) - this.address(index), state: BLOCK_STATES[this.states[index]], what: "block" };
  }
}

// All known blocks and slots.
class Blocks {
  constructor(blocks, slots) {
    this.lists = [];
    this.pages = [];
    if (blocks) this.readBlocks(blocks);
    if (slots) this.readSlots(slots);
    this.listStarts = this.lists.map((list) => list.start);
    this.pageStarts = this.pages.map((page) => page.address);
  }

  readBlocks(bytes) {
    const numbers = new Varints(bytes);
    while (numbers.more) {
      const start = numbers.next();
      const length = numbers.next();
      if (length) this.lists.push(new BlockList(start, bytes, numbers.at, numbers.at + length));
      numbers.at += length;
    }
    this.lists.sort((one, other) => one.start - other.start);
  }

  readSlots(bytes) {
    const numbers = new Varints(bytes);
    while (numbers.more) {
      const page = { address: numbers.next(), slotBytes: numbers.next(), first: numbers.next(), slots: numbers.next() };
      const length = (page.slots + 7) >> 3;
      page.live = bytes.subarray(numbers.at, numbers.at + length);
      numbers.at += length;
      this.pages.push(page);
    }
    this.pages.sort((one, other) => one.address - other.address);
  }

  // Calls back for each block or slot between two addresses, in order. Slots take precedence: for malloc a Ruby page is one
  // block.
  each(from, past, call) {
    for (let at = from; at < past;) {
      const found = this.at(at);
      if (!found) { at = at - (at % 8) + 8; continue; }
      call(found);
      at = found.address + found.bytes;
    }
  }

  // The block or slot at an address, or null.
  at(address) { return this.slotAt(address) || this.blockAt(address); }

  slotAt(address) {
    const page = this.pages[lastNotAbove(this.pageStarts, address)];
    if (!page) return null;
    const number = Math.floor((address - page.address - page.first) / page.slotBytes);
    if (number < 0 || number >= page.slots) return null;
    const live = (page.live[number >> 3] >> (number & 7)) & 1;
    return { address: page.address + page.first + number * page.slotBytes, bytes: page.slotBytes, state: live ? "live" : "vacant", what: "slot" };
  }

  blockAt(address) {
    const list = this.lists[lastNotAbove(this.listStarts, address)];
    const index = list ? list.find(address) : -1;
    return index < 0 ? null : list.block(index);
  }

  get any() { return this.lists.length + this.pages.length > 0; }
}
