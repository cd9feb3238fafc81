// Reads each message of standard input with its class, and prints its fields: node read.cjs SETUP CLASSES
const path = require("path");
const readline = require("readline");
const KaitaiStream = require("kaitai-struct/KaitaiStream");

const [setup, classes] = process.argv.slice(2).map((name) => path.resolve(name));
require(setup);

const plain = (value) => {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === "bigint") return { bigint: String(value) };
  if (typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, item]) => !name.startsWith("_") && item !== undefined)
      .map(([name, item]) => [name, plain(item)]),
  );
};

// A text without an end is a plain Error; a TypeError is a mistake of a program, but for wrong UTF-8.
const isRefusal = (error) =>
  !(error instanceof TypeError) || error.code === "ERR_ENCODING_INVALID_ENCODED_DATA";

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const [name, parameters, data] = JSON.parse(line);
  const Class = require(path.join(classes, name))[name];
  let answer;
  try {
    const bytes = Uint8Array.from(Buffer.from(data, "hex"));
    const { message } = new Class(new KaitaiStream(bytes.buffer), null, null, ...parameters);
    answer = { message: message.constructor.name, fields: plain(message) };
  } catch (error) {
    if (!isRefusal(error)) throw error;
    answer = { refused: String(error) };
  }
  console.log(JSON.stringify(answer));
});
