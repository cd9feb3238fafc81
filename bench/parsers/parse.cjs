// Parses all messages of a file with pg-logical-replication, once for each line that comes in.
const fs = require("fs");
const readline = require("readline");
const { PgoutputPlugin } = require("pg-logical-replication");

const file = fs.readFileSync(process.argv[2]);
const messages = [];
for (let at = 0; at < file.length; ) {
  const size = file.readUInt32BE(at);
  messages.push(file.subarray(at + 4, at + 4 + size));
  at += 4 + size;
}
const plugin = new PgoutputPlugin({ protoVersion: 1, publicationNames: [] });
readline.createInterface({ input: process.stdin }).on("line", () => {
  let tags = 0;
  for (const message of messages) tags += plugin.parse(message).tag.length;
  console.log(tags);
});
