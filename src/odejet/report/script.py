"""Script: what lets one save the pictures of a page, and the policy by which nothing else runs or is loaded.

A picture is saved as it is shown, at its present width and in the light dress of the page.  Without scripts the page
lacks these buttons and nothing else.
"""

import base64
import hashlib

SCRIPT = """
for (const figure of document.querySelectorAll('figure')) {
  const bar = document.createElement('div');
  bar.className = 'save';
  for (const kind of ['SVG', 'PNG']) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = kind;
    button.title = 'save this picture as ' + kind;
    button.onclick = () => save(figure.querySelector('svg'), kind.toLowerCase());
    bar.append(button);
  }
  figure.append(bar);
}
const KEPT = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-linecap', 'stroke-linejoin', 'stroke-dasharray',
  'vector-effect', 'font-family', 'font-size', 'font-weight', 'text-anchor', 'overflow'];
function standing(drawn) {
  const box = drawn.getBoundingClientRect(), left = parseFloat(getComputedStyle(drawn).marginLeft) || 0;
  const copy = drawn.cloneNode(true), wanted = [drawn, ...drawn.querySelectorAll('*')];
  [copy, ...copy.querySelectorAll('*')].forEach((element, i) => {
    const style = getComputedStyle(wanted[i]);
    element.removeAttribute('style');
    for (const name of KEPT) element.style.setProperty(name, style.getPropertyValue(name));
  });
  copy.setAttribute('x', left); copy.setAttribute('width', box.width); copy.setAttribute('height', box.height);
  copy.style.overflow = 'visible';
  const root = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  root.setAttribute('width', Math.ceil(left + box.width + 14)); root.setAttribute('height', Math.ceil(box.height + 4));
  const ground = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  ground.setAttribute('width', '100%'); ground.setAttribute('height', '100%'); ground.setAttribute('fill', '#fff');
  root.append(ground, copy);
  return root;
}
function save(drawn, kind) {
  document.documentElement.classList.add('light');
  const root = standing(drawn);
  document.documentElement.classList.remove('light');
  const name = (drawn.getAttribute('aria-label') || 'picture').replace(/[^\\p{L}\\p{N}]+/gu, '_') + '.' + kind;
  const text = new XMLSerializer().serializeToString(root);
  const address = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(text);
  if (kind === 'svg') return download(address, name);
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement('canvas'), scale = 3;
    canvas.width = scale * image.width; canvas.height = scale * image.height;
    canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
    download(canvas.toDataURL('image/png'), name);
  };
  image.src = address;
}
function download(address, name) {
  const link = document.createElement('a');
  link.href = address; link.download = name;
  link.click();
}
"""

_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()

POLICY = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{_HASH}'"
"""What the page may load and run: nothing but what is in it."""
