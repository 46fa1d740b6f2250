"""Style: how a page looks, in light and dark, and what it may load."""

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What the page may load: nothing but what is in it."""

STYLE = """
:root { color-scheme: light dark; --ink:#222; --soft:#5d646b; --paper:#fff; --ground:#f4f5f7; --line:#dcdfe3;
  --grid:#e5e5e5; --blue:#1f4e79; --grey:#8d8d8d; --rust:#b4531f; --good:#2f6f52; --bad:#a33b2b; --fair:#8b681f }
@media (prefers-color-scheme: dark) { :root { --ink:#e4e6e8; --soft:#a3abb3; --paper:#1b1e22; --ground:#121417;
  --line:#343a41; --grid:#343a41; --blue:#82b6e8; --grey:#8f969d; --rust:#e8975f; --good:#74c69d; --bad:#f08a7a;
  --fair:#dcb65c } }
* { box-sizing: border-box }
body { margin:0; background:var(--ground); color:var(--ink);
  font:15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif }
main { max-width:1120px; margin:0 auto; padding:24px 20px 48px }
h1 { font-size:1.6rem; line-height:1.25; margin:0 0 6px; overflow-wrap:anywhere }
h2 { font-size:1.1rem; margin:0 0 10px }
p { margin:6px 0 }
section, header { background:var(--paper); border:1px solid var(--line); border-radius:10px; padding:18px 22px;
  margin:0 0 16px }
.badge { display:inline-block; border:1.5px solid currentColor; border-radius:99px; padding:1px 12px; font-weight:600;
  font-size:.9rem }
.good { color:var(--good) } .bad { color:var(--bad) } .fair { color:var(--fair) } .soft { color:var(--soft) }
.facts { display:grid; grid-template-columns:repeat(auto-fit, minmax(108px, 1fr)); gap:10px 14px; margin:16px 0 0 }
.facts dt { color:var(--soft); font-size:.8rem; white-space:nowrap }
.facts dd { margin:0; font-size:1.05rem; overflow-wrap:anywhere }
.scroll { overflow-x:auto }
table { border-collapse:collapse; width:100%; font-variant-numeric:tabular-nums }
th { text-align:left; color:var(--soft); font-weight:600; font-size:.82rem; white-space:nowrap }
td, th { padding:4px 24px 4px 0; border-bottom:1px solid var(--line); vertical-align:top }
tr:last-child td { border-bottom:0 }
td.number, th.number { text-align:right; white-space:nowrap } td.name { overflow-wrap:anywhere }
code, pre { font-family:ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size:.9em }
pre { margin:0; line-height:1.6; white-space:pre-wrap; overflow-wrap:anywhere }
.plots { display:grid; grid-template-columns:repeat(auto-fit, minmax(min(100%, 400px), 1fr)); gap:14px 22px }
figure { margin:0; min-width:0 } figcaption { color:var(--soft); font-size:.85rem; margin-top:4px }
svg { display:block; width:100%; height:auto }
svg text { font-family:system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif }
.pair { display:grid; grid-template-columns:repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap:0 16px }
ul { margin:6px 0; padding-left:20px }
footer { color:var(--soft); font-size:.85rem }
@media print { body { background:none } section, header { break-inside:avoid; border-color:#ccc } }
"""
