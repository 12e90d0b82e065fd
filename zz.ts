import { Agent, configure, openStore, Session, tool } from './src/index.ts'
import { zeroLatency } from './bench/support/zero-latency.ts'
configure({ store: await openStore('memory:') })
const add = tool({ name:'add', description:'Adds.', input:{type:'object',properties:{a:{type:'number'},b:{type:'number'}},required:['a','b']}, effect:'pure', run:({a,b}:any)=>a+b })
const many=20
const agent = new Agent('Be brief.', { model: zeroLatency(many), tools:[add], builtins:false, maxRounds: many+1 } as any)
const agent3 = new Agent('Be brief.', { model: zeroLatency(2), tools:[add], builtins:false } as any)
const past = Session.fromUserMessage('go')
for (let i=0;i<20;i++) await agent(past)
const t=performance.now(), c=process.cpuUsage(); const N=400
for (let i=0;i<N;i++) await agent(past)
const u=process.cpuUsage(c)
console.log('wall/round', ((performance.now()-t)/N/21*1000).toFixed(1),'cpu/round', ((u.user+u.system)/N/21).toFixed(1))

