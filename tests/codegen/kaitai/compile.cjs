// Compiles descriptions: node compile.cjs LANGUAGE,... OUT FILE...
const fs = require("fs");
const path = require("path");
const compiler = require("kaitai-struct-compiler");
const yaml = require("js-yaml");

const [languages, out, ...files] = process.argv.slice(2);
const run = async () => {
  for (const language of languages.split(",")) {
    for (const file of files) {
      const sources = await compiler.compile(language, yaml.load(fs.readFileSync(file, "utf8")), null, false);
      for (const [name, text] of Object.entries(sources)) {
        const place = path.join(out, language, name);
        fs.mkdirSync(path.dirname(place), { recursive: true });
        fs.writeFileSync(place, text);
      }
    }
  }
};
run().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
