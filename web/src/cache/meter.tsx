export interface Part {
  name: string;
  value: number;
  kind: string; // a class that gives the colour
}

interface Props {
  name: string;
  parts: Part[];
  whole: number; // 0: the parts together
  told: string; // the figures beside the name
}

/** A bar of parts of a whole. */
export function Meter({name, parts, whole, told}: Props) {
  const sum = parts.reduce((all, part) => all + part.value, 0);
  const shown = parts.filter((part) => part.value > 0);
  const scale = Math.max(whole, sum, 1);
  return (
    <div class="meter">
      <div class="meter-head">
        <span>{name}</span>
        <span class="figures">{told}</span>
      </div>
      <div class="bar" role="img" aria-label={`${name}: ${told}`}>
        {shown.map((part) => (
          <span class={part.kind} style={{width: `${(100 * part.value) / scale}%`}} title={part.name} />
        ))}
      </div>
    </div>
  );
}
