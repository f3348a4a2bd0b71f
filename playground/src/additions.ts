/** Paths and policies that are added to a scenario's text, as tables at its end. */

const FAMILIES = ["congestion", "scheduler", "path_manager"];

/** A table for one more path, named by its number (from 1). */
export function anotherPath(number: number): string {
  return `
[[paths]]
name = "path ${number}"
links = [{ name = "link", rate = "10 Mbit/s", delay = "20 ms", queue = "100 packets" }]
`;
}

/**
 * A table for a policy of that name, which is a list as `--policy` takes it: members of families, or `anabranch` for the default
 * combination. Throws an error with a sentence if it is something else; whether the members exist, the engine says.
 */
export function anotherPolicy(name: string): string {
  const keys = new Map<string, string>();
  for (const part of name.split(",").map((each) => each.trim())) {
    const [family = "", member = ""] = part.split("=").map((each) => each.trim());
    if (part === "anabranch") {
      FAMILIES.forEach((each) => keys.set(each, "anabranch"));
    } else if (FAMILIES.includes(family) && /^\w+$/.test(member)) {
      keys.set(family, member);
    } else {
      throw new Error(`"${part}" is no policy: try anabranch, or a list of congestion=..., scheduler=... and path_manager=...`);
    }
  }
  const lines = [...keys].map(([family, member]) => `${family} = "${member}"\n`);
  return `\n[[policies]]\nname = ${JSON.stringify(name)}\n${lines.join("")}`;
}

/** The text with a policy more. One without policies runs plain MPTCP, which stays. */
export function withPolicy(toml: string, name: string): string {
  const plain = toml.includes("[[policies]]") ? "" : '\n[[policies]]\nname = "plain"\n';
  return `${toml.trimEnd()}\n${plain}${anotherPolicy(name)}`;
}
