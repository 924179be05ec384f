import createPurifier from 'dompurify';
import {Marked, type Tokens} from 'marked';
import type {TrustedHTML} from 'trusted-types/lib';
import {highlight} from './highlighting';

const escapes: Record<string, string> = {'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;'};
const escape = (text: string): string => text.replace(/[&<>"']/g, (letter) => escapes[letter] ?? letter);

function codeBlock({text, lang}: Tokens.Code): string {
  const language = (lang ?? '').trim().split(/\s/)[0] ?? '';
  const head = `<div class="code-head"><span>${escape(language || 'text')}</span><button type="button" data-copy="">Copy</button></div>`;
  const body = highlight(text, language.toLowerCase()) ?? escape(text);
  return `<div class="code">${head}<pre tabindex="0"><code>${body}\n</code></pre></div>`;
}

/** HTML in an answer is shown as it was written, and a picture as its link: neither can load anything. */
const marked = new Marked({
  gfm: true,
  renderer: {
    code: codeBlock,
    html: ({text}) => escape(text),
    image: ({href, text}) => `<a href="${escape(href)}">${escape(text || href)}</a>`,
    checkbox: ({checked}) => (checked ? '☑ ' : '☐ '),
    table(token) {
      const row = (cells: Tokens.TableCell[], tag: string) =>
        `<tr>${cells.map((cell) => `<${tag}${cell.align ? ` align="${cell.align}"` : ''}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join('')}</tr>`;
      const body = token.rows.map((cells) => row(cells, 'td')).join('');
      return `<div class="table"><table><thead>${row(token.header, 'th')}</thead><tbody>${body}</tbody></table></div>`;
    },
  },
});

const purifier = createPurifier(window);
purifier.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName !== 'A') return;
  node.setAttribute('target', '_blank');
  node.setAttribute('rel', 'noopener noreferrer nofollow');
});

const allowed = {
  ALLOWED_TAGS:
    'a b blockquote br button code del div em h1 h2 h3 h4 h5 h6 hr i li ol p pre span strong sub sup table tbody td th thead tr ul'.split(' '),
  ALLOWED_ATTR: ['align', 'class', 'data-copy', 'href', 'start', 'tabindex', 'title', 'type'],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
  ADD_URI_SAFE_ATTR: ['align', 'start', 'tabindex', 'type'], // hold no address
  RETURN_TRUSTED_TYPE: true as const,
};

/** Sanitised HTML of an answer. */
export function renderMarkdown(text: string): TrustedHTML {
  return purifier.sanitize(marked.parse(text, {async: false}), allowed) as unknown as TrustedHTML;
}
