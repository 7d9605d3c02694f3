/** What the server's Spark does: one for all connectors, started when the first needs it. */
import { count, seconds, time } from "../format.js";
import { html } from "../html.js";
import { linkTo } from "../router.js";
import { useResource } from "../store.js";
import { CopyAs } from "../parts/copying.js";
import { Empty, Notice, Shown } from "../parts/notice.js";
import { Sheet } from "../parts/sheet.js";
import { State } from "../parts/state.js";

export function Work() {
  const found = useResource("/spark", { connector: null, kinds: ["CutPublished", "SnapshotProgressed"], fastest: 2000, everySeconds: 5 });
  return html`<div class="head"><div class="title"><h1 tabindex="-1">Work</h1></div><${CopyAs} request=${{ method: "GET", path: "/spark" }} /></div>
    <${Shown} of=${found} what="Spark">${(spark) => html`<section class="card"><header><h2>Spark</h2><${State} of=${spark.is_up ? "up" : "stopped"} word=${spark.is_up ? null : "not started"} /></header>
      <div class="body stack"><dl class="facts figures"><dt>Works at</dt><dd><code>${spark.master ?? "not known"}</code></dd>
        ${spark.application && html`<dt>Application</dt><dd><code>${spark.application}</code></dd>`}
        <dt>Its own page</dt><dd>${spark.ui ? html`<code>${spark.ui}</code>` : "off; tailrace serve --spark-ui shows it"}</dd>
        <dt>Stages now</dt><dd>${spark.stages.length ? spark.stages.map((each) => html`<p>${each.name}: ${count(each.tasks_done)} of ${count(each.tasks)} tasks done, ${count(each.tasks_active)} at work</p>`) : "none"}</dd></dl>
        ${spark.problem && html`<${Notice} text=${spark.problem} />`}</div></section>
      <section class="card"><header><h2>Jobs</h2><span class="small soft">the last fifty, the newest first</span></header>${spark.jobs.length ? html`<${Jobs} jobs=${spark.jobs} />`
        : html`<${Empty} title="No job yet"><p>${spark.is_up ? "Spark is up and has had nothing to do." : "Spark starts when there are rows to move."}</p><//>`}</section>`}<//>`;
}

function Jobs({ jobs }) {
  const took = (job) => (job.begun ? seconds(((job.ended ? Date.parse(job.ended) : Date.now()) - Date.parse(job.begun)) / 1000) : "not known");
  const rows = jobs.map((job) => ({ key: job.number, cells: [job.number, job.description, job.connector ? html`<a href=${linkTo(job.connector)}>${job.connector}</a>` : html`<span class="soft">none now</span>`,
    html`<${State} of=${job.state} quiet />`, time(job.begun), took(job), `${count(job.tasks_done)} of ${count(job.tasks)}${job.tasks_failed ? `, ${count(job.tasks_failed)} failed` : ""}`] }));
  return html`<${Sheet} name="Jobs of Spark" head=${["#Job", "~What", "~Connector", "State", "Begun", "#Took", "#Tasks"]} rows=${rows} />`;
}
