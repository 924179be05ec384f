import {useMemo, useRef, useState, useEffect} from 'preact/hooks';
import {copyText} from '../text/clipboard';
import {renderMarkdown} from '../text/markdown';

const kLeastBetween = 80; // milliseconds between two renderings of a text that grows

/** The text, at most every so often while it grows. */
function useCalm(text: string, growing: boolean): string {
  const [shown, show] = useState(text);
  const last = useRef(0);
  useEffect(() => {
    const wait = growing ? Math.max(0, last.current + kLeastBetween - performance.now()) : 0;
    const timer = window.setTimeout(() => {
      last.current = performance.now();
      show(text);
    }, wait);
    return () => window.clearTimeout(timer);
  }, [text, growing]);
  return growing ? shown : text;
}

async function copyCode(event: MouseEvent): Promise<void> {
  const button = (event.target as Element).closest<HTMLButtonElement>('button[data-copy]');
  if (!button) return;
  const code = button.closest('.code')?.querySelector('code')?.textContent ?? '';
  button.textContent = (await copyText(code.replace(/\n$/, ''))) ? 'Copied' : 'Not copied';
  window.setTimeout(() => (button.textContent = 'Copy'), 1500);
}

/** An answer's Markdown. */
export function Prose({text, growing}: {text: string; growing: boolean}) {
  const calm = useCalm(text, growing);
  const html = useMemo(() => renderMarkdown(calm), [calm]);
  return (
    <div
      class={growing ? 'prose growing' : 'prose'}
      onClick={(event) => void copyCode(event)}
      dangerouslySetInnerHTML={{__html: html as unknown as string}}
    />
  );
}
