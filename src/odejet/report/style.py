"""Style: how a page looks, in light and dark, narrow and wide, and on paper."""

LIGHT = """--ink:#22262a; --soft:#5d646b; --paper:#fff; --ground:#f4f5f7; --line:#dcdfe3; --grid:#e8eaed;
  --blue:#1f5f9e; --grey:#8d8d8d; --rust:#b4531f; --good:#2f6f52; --bad:#a33b2b; --fair:#83601a;
  --between:#22262a;"""
DARK = """--ink:#e4e6e8; --soft:#a3abb3; --paper:#1b1e22; --ground:#121417; --line:#343a41; --grid:#2b3036;
  --blue:#82b6e8; --grey:#8f969d; --rust:#e8975f; --good:#74c69d; --bad:#f08a7a; --fair:#dcb65c;
  --between:#1b1e22;"""

STYLE = f"""
:root {{ color-scheme: light dark; {LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}
:root.light {{ {LIGHT} }}
* {{ box-sizing: border-box }}
body {{ margin:0; background:var(--ground); color:var(--ink);
  font:15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif }}
main {{ max-width:1480px; margin:0 auto; padding:24px 20px 48px }}
h1 {{ font-size:1.6rem; line-height:1.3; margin:0 0 6px; overflow-wrap:anywhere }}
h2 {{ font-size:1.12rem; margin:0 0 10px }}
h3 {{ font-size:.95rem; margin:18px 0 6px; overflow-wrap:anywhere }}
p {{ margin:6px 0; max-width:80ch; overflow-wrap:anywhere }}
section, header, details {{ background:var(--paper); border:1px solid var(--line); border-radius:10px;
  padding:18px 22px; margin:0 0 16px }}
summary {{ cursor:pointer }} summary h2 {{ display:inline }}
details[open] summary {{ margin-bottom:10px }}
section details {{ border:0; padding:0; margin:10px 0 0 }}
.badge {{ display:inline-block; vertical-align:.22em; border:1.5px solid currentColor; border-radius:99px;
  padding:1px 12px; font-weight:600; font-size:.9rem; line-height:1.5; margin-left:6px }}
.good {{ color:var(--good) }} .bad {{ color:var(--bad) }} .fair {{ color:var(--fair) }} .soft {{ color:var(--soft) }}
.facts {{ display:grid; grid-template-columns:repeat(auto-fit, minmax(98px, max-content)); gap:10px 22px;
  margin:14px 0 0 }}
.facts dt {{ color:var(--soft); font-size:.8rem; white-space:nowrap }}
.facts dd {{ margin:0; font-size:1.05rem; white-space:nowrap }}
.scroll {{ overflow-x:auto }}
table {{ border-collapse:collapse; font-variant-numeric:tabular-nums; min-width:min(100%, 560px) }}
th {{ text-align:left; color:var(--soft); font-weight:600; font-size:.82rem; vertical-align:bottom; line-height:1.25 }}
td, th {{ padding:4px 22px 4px 0; border-bottom:1px solid var(--line) }}
td {{ vertical-align:top }} td:last-child, th:last-child {{ padding-right:0 }}
tr:last-child td {{ border-bottom:0 }}
.number {{ text-align:right }} td.number {{ white-space:nowrap }} td code {{ overflow-wrap:anywhere }}
code, pre {{ font-family:ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size:.9em }}
pre {{ margin:0; line-height:1.6; white-space:pre-wrap; overflow-wrap:anywhere }}
ul {{ margin:6px 0; padding-left:20px; max-width:80ch }}
.reasons {{ list-style:none; padding:0 }}
footer {{ color:var(--soft); font-size:.85rem }}

.gallery {{ display:grid; gap:14px 20px; margin-top:10px }}
.gallery.small {{ grid-template-columns:repeat(auto-fill,
  minmax(max(min(100%, 185px), (100% - (var(--row) - 1)*20px)/var(--row)), 1fr)) }}
.gallery.medium {{ grid-template-columns:repeat(auto-fill, minmax(min(100%, 380px), 1fr)) }}
figure {{ margin:0; min-width:0; position:relative }} figure.wide {{ grid-column:1 / -1 }}
.matrix {{ overflow-x:auto }} .matrix svg {{ max-width:100%; height:auto; display:block }}
.save {{ position:absolute; top:-2px; right:10px; opacity:0 }}
figure:hover .save, .save:focus-within {{ opacity:1 }}
.save button {{ font:11px/1.4 inherit; color:var(--soft); background:var(--paper); border:1px solid var(--line);
  border-radius:5px; padding:1px 7px; margin-left:4px; cursor:pointer }}
.save button:hover {{ color:var(--ink); border-color:var(--soft) }}
.picture {{ display:block; overflow:visible; margin:0 14px 0 var(--left); width:calc(100% - var(--left) - 14px);
  font-size:11px }}
svg text {{ font-family:system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; font-size:11px }}
.title {{ font-weight:600; fill:var(--ink); font-size:12px }}
.tick {{ fill:var(--soft) }} .tick.rust {{ fill:var(--rust) }} .tick.onto {{ fill:var(--paper) }}
.tick.between {{ fill:var(--between) }} .tick.over {{ fill:var(--ink) }}
.grid {{ stroke:var(--grid); stroke-width:1px }} .axis {{ stroke:var(--soft); stroke-width:1px }}
.line {{ fill:none; stroke-width:1.8px; stroke-linejoin:round; vector-effect:non-scaling-stroke }}
.line.thin {{ stroke-width:1px }} .line.rim {{ stroke:var(--paper); stroke-width:5px }}
.dots {{ fill:none; stroke-linecap:round; vector-effect:non-scaling-stroke }}
.line.ink, .dots.ink {{ stroke:var(--ink) }} .line.blue, .dots.blue {{ stroke:var(--blue) }}
.line.rust, .dots.rust {{ stroke:var(--rust) }} .line.grey, .dots.grey {{ stroke:var(--grey) }}
.dots.paper {{ stroke:var(--paper) }}
.fill.blue {{ fill:var(--blue) }} .fill.rust {{ fill:var(--rust) }} .fill.grey {{ fill:var(--grey) }}
.fill.ink {{ fill:var(--ink) }}

.key {{ display:flex; flex-wrap:wrap; gap:2px 18px; font-size:.88rem; max-width:none }}
.key span {{ white-space:nowrap }}
.mark {{ display:inline-block; width:22px; height:10px; margin-right:6px }}
.mark.dot {{ width:8px; height:8px; border-radius:9px; background:var(--ink) }}
.mark.ring {{ width:12px; height:12px; border-radius:9px; border:2px solid var(--rust); vertical-align:-2px }}
.mark.line {{ height:0; border-top:2.5px solid var(--blue); vertical-align:4px }}
.mark.line.rust {{ border-color:var(--rust) }} .mark.line.dashed {{ border-top-style:dashed }}
.mark.band {{ background:color-mix(in srgb, var(--blue) 38%, var(--paper)) }}
.mark.band.light {{ background:color-mix(in srgb, var(--blue) 14%, var(--paper)) }}
.bars {{ display:grid; grid-template-columns:max-content 1fr; gap:3px 14px; max-width:620px; font-size:.9rem }}
.bars i {{ display:inline-block; height:.72em; min-width:1px; background:var(--blue); border-radius:2px;
  margin-right:5px }}

@media (max-width:600px) {{
  main {{ padding:10px 8px 32px }} section, header, details {{ padding:14px 14px; border-radius:8px }}
  h1 {{ font-size:1.35rem }} .facts {{ grid-template-columns:repeat(auto-fit, minmax(88px, 1fr)); gap:8px 16px }}
  .gallery.small {{ grid-template-columns:repeat(auto-fill, minmax(140px, 1fr)) }}
  table, tbody, tr {{ display:block }} thead {{ display:none }}
  tr {{ border-bottom:1px solid var(--line); padding:7px 0 }} tr:last-child {{ border-bottom:0 }}
  td {{ display:flex; justify-content:space-between; gap:14px; border:0; padding:1px 0; text-align:right }}
  td:first-child {{ font-weight:600 }} td:first-child::before {{ content:none }}
  td:empty {{ display:none }}
  td::before {{ content:attr(data-head); color:var(--soft); font-size:.85rem; text-align:left }}
  td.number {{ white-space:normal }}
}}
@page {{ margin:14mm }}
@media print {{
  :root {{ {LIGHT} --ground:#fff }}
  body {{ font-size:10pt; print-color-adjust:exact; -webkit-print-color-adjust:exact }}
  main {{ max-width:none; padding:0 }} .save, main > details:not([open]) {{ display:none }}
  section details:has(table)::details-content {{ content-visibility:visible; display:block }}
  section, header, details {{ border:0; border-top:1px solid #ccc; border-radius:0; padding:10px 0; margin:0 }}
  header {{ border-top:0 }} h2, h3, p:has(+ .gallery), p:has(+ p) {{ break-after:avoid }}
  section {{ break-inside:avoid }} figure, tr, li {{ break-inside:avoid }}
  .gallery.small {{ grid-template-columns:repeat(3, 1fr) }} .gallery.medium {{ grid-template-columns:repeat(2, 1fr) }}
}}
"""
