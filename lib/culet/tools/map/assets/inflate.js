// Unpacks zlib's format (RFC 1950, RFC 1951), for browsers that have no DecompressionStream.

const LENGTH_BASE = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
const LENGTH_EXTRA = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const DISTANCE_BASE = [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145,
  8193, 12289, 16385, 24577];
const DISTANCE_EXTRA = [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13];
const LENGTHS_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const LONGEST_CODE = 15;

// A canonical Huffman code: how many codes there are of each length, and the symbols in the order of their codes.
class HuffmanCode {
  constructor(lengths) {
    this.counts = new Uint16Array(LONGEST_CODE + 1);
    for (const length of lengths) this.counts[length]++;
    this.counts[0] = 0;
    const offsets = new Uint16Array(LONGEST_CODE + 2);
    for (let length = 1; length <= LONGEST_CODE; length++) offsets[length + 1] = offsets[length] + this.counts[length];
    this.symbols = new Uint16Array(lengths.length);
    lengths.forEach((length, symbol) => { if (length) this.symbols[offsets[length]++] = symbol; });
  }
}

class Inflater {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 2;
    this.hold = 0;
    this.held = 0;
    this.out = new Uint8Array(Math.max(1024, bytes.length * 4));
    this.size = 0;
  }

  run() {
    let last;
    do {
      last = this.bits(1);
      const type = this.bits(2);
      if (type === 0) this.stored();
      else if (type === 1) this.blocks(Inflater.fixed(), Inflater.fixedDistances());
      else if (type === 2) this.dynamic();
      else throw new Error("the data in this page is damaged");
    } while (!last);
    return this.out.subarray(0, this.size);
  }

  static fixed() {
    return new HuffmanCode(Array.from({ length: 288 }, (_, symbol) => (symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8)));
  }

  static fixedDistances() { return new HuffmanCode(new Array(30).fill(5)); }

  bits(count) {
    while (this.held < count) {
      if (this.at >= this.bytes.length) throw new Error("the data in this page is cut off");
      this.hold |= this.bytes[this.at++] << this.held;
      this.held += 8;
    }
    const value = this.hold & ((1 << count) - 1);
    this.hold >>>= count;
    this.held -= count;
    return value;
  }

  symbol(code) {
    let word = 0;
    let first = 0;
    let index = 0;
    for (let length = 1; length <= LONGEST_CODE; length++) {
      word |= this.bits(1);
      const count = code.counts[length];
      if (word - count < first) return code.symbols[index + (word - first)];
      index += count;
      first = (first + count) << 1;
      word <<= 1;
    }
    throw new Error("the data in this page is damaged");
  }

  room(count) {
    if (this.size + count <= this.out.length) return;
    const more = new Uint8Array(Math.max(this.out.length * 2, this.size + count));
    more.set(this.out.subarray(0, this.size));
    this.out = more;
  }

  stored() {
    this.hold = this.held = 0;
    const length = this.bytes[this.at] | (this.bytes[this.at + 1] << 8);
    this.at += 4;
    if (this.at + length > this.bytes.length) throw new Error("the data in this page is cut off");
    this.room(length);
    this.out.set(this.bytes.subarray(this.at, this.at + length), this.size);
    this.at += length;
    this.size += length;
  }

  dynamic() {
    const literals = this.bits(5) + 257;
    const distances = this.bits(5) + 1;
    const told = this.bits(4) + 4;
    const lengths = new Array(19).fill(0);
    for (let index = 0; index < told; index++) lengths[LENGTHS_ORDER[index]] = this.bits(3);
    const all = this.lengths(new HuffmanCode(lengths), literals + distances);
    this.blocks(new HuffmanCode(all.slice(0, literals)), new HuffmanCode(all.slice(literals)));
  }

  lengths(code, count) {
    const lengths = [];
    while (lengths.length < count) {
      const symbol = this.symbol(code);
      if (symbol < 16) { lengths.push(symbol); continue; }
      const value = symbol === 16 ? lengths[lengths.length - 1] : 0;
      const times = symbol === 16 ? 3 + this.bits(2) : symbol === 17 ? 3 + this.bits(3) : 11 + this.bits(7);
      for (let index = 0; index < times; index++) lengths.push(value);
    }
    return lengths;
  }

  blocks(literals, distances) {
    for (;;) {
      let symbol = this.symbol(literals);
      if (symbol === 256) return;
      if (symbol < 256) {
        this.room(1);
        this.out[this.size++] = symbol;
        continue;
      }
      symbol -= 257;
      const length = LENGTH_BASE[symbol] + this.bits(LENGTH_EXTRA[symbol]);
      const far = this.symbol(distances);
      const distance = DISTANCE_BASE[far] + this.bits(DISTANCE_EXTRA[far]);
      if (distance > this.size) throw new Error("the data in this page is damaged");
      this.room(length);
      for (let index = 0; index < length; index++, this.size++) this.out[this.size] = this.out[this.size - distance];
    }
  }
}

// Bytes in zlib's format -> what was packed into them.
function inflate(bytes) { return new Inflater(bytes).run(); }
