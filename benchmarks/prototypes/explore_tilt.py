"""Exploration: hierarchical Dirichlet with tilt. Options in dict opt."""
import numpy as np, scipy.sparse as sp, scipy.linalg as sl
from scipy.special import gammaln, digamma

GRID=np.geomspace(0.03,100,17)

def prepare(S,A,state,action,nxt,term,rew,times,starts,opt):
    """starts: counts by state (or distribution if opt fixed)."""
    m={}
    ends=np.unique(nxt[term]); E=len(ends)
    out=np.where(term,S+np.searchsorted(ends,nxt) if E else 0,nxt).astype(int)
    O=S+E
    pair=state*A+action
    key=pair.astype(np.int64)*O+out
    ck,inv=np.unique(key,return_inverse=True)
    n=np.bincount(inv,times).astype(float)
    rmean=np.bincount(inv,times*rew)/n
    r2=np.bincount(inv,times*(rew-rmean[inv])**2)
    cp,co=np.divmod(ck,O)
    m.update(S=S,A=A,O=O,E=E,cp=cp,co=co,n=n,r=rmean,r2=r2)
    npair=np.bincount(cp,n,S*A); m['npair']=npair
    cs=cp//A; m['cs']=cs
    # state cells
    sk,sinv=np.unique(cs.astype(np.int64)*O+co,return_inverse=True)
    ns=np.bincount(sinv,n); ts=np.bincount(sinv).astype(float) # ts: number of actions showing the outcome
    ss,so=np.divmod(sk,O)
    m.update(ss=ss,so=so,ns=ns,ts=ts,sinv=sinv)
    m['Ns']=np.bincount(ss,ns,S)
    # log level g: tables = number of states (distinct) showing outcome
    u=np.zeros(O); obs=np.zeros(O,bool); obs[co]=True
    seenstate=np.zeros(S,bool); seenstate[cs]=True
    u[:S]=1.0/S; 
    if E: u[S:]=1.0/S
    u/=u.sum()
    gc=np.bincount(co,n,O) if opt.get('gby','count')=='count' else np.bincount(so,minlength=O).astype(float)
    gw=opt.get('gw',1.0)
    g=(gc+gw*u)/(gc.sum()+gw)
    m['g']=g
    # v grid: state rows around g
    if 'v' in opt: m['vpost']=np.array([1.0]); m['vgrid']=np.array([opt['v']])
    else:
        ll=[]
        for v in GRID:
            # leave-state-out g
            gl=(gc[so]-0*ns+gw*u[so])/(gc.sum()+gw)
            a=v*gl
            l=(gammaln(a+ns)-gammaln(a)).sum()+ (gammaln(v)-gammaln(v+m['Ns'][m['Ns']>0])).sum()
            ll.append(l)
        ll=np.array(ll); w=np.exp(ll-ll.max()); m['vgrid']=GRID; m['vpost']=w/w.sum()
    vbar=np.exp((m['vpost']*np.log(m['vgrid'])).sum()); m['vbar']=vbar
    # base for pair excluding own counts
    own=n; tot=ns[sinv]; Nother=m['Ns'][cs]-npair[cp]
    b=(tot-own+vbar*g[co])/(Nother+vbar); m['b_loo']=b
    if 'w' in opt: m['wgrid']=np.array([opt['w']]); m['wpost']=np.array([1.0])
    else:
        ll=[]
        seen=npair>0
        for w in GRID:
            a=w*b
            ll.append((gammaln(a+n)-gammaln(a)).sum()+(gammaln(w)-gammaln(w+npair[seen])).sum())
        ll=np.array(ll); 
        if 'wcap' in opt: ll=np.where(GRID<=opt['wcap'],ll,-np.inf)
        w=np.exp(ll-ll.max()); m['wgrid']=GRID; m['wpost']=w/w.sum()
    m['starts']=starts
    # rewards: stratum by terminal; additive backfit on cells
    m['rewardmodel']=reward_model(m)
    return m

def reward_model(m):
    """Predict the mean reward of a cell (pair, outcome) that was not seen. Candidates, each with a fallback chain:
    none; outcome; state and outcome; pair. Chosen by leave-one-cell-out squared error, by stratum (ended or not)."""
    S,O,A=m['S'],m['O'],m['A']; r=m['r']; term=m['co']>=S
    nlev=dict(so=(m['cs'].astype(np.int64)*O+m['co']),o=m['co'].astype(np.int64),p=m['cp'].astype(np.int64))
    R=dict(mu=np.zeros(2),chain={},resid={},tab={})
    CH=[(),('o',),('so','o'),('p',),('p','so','o')]
    for k in (0,1):
        c=np.flatnonzero(term==k)
        R['chain'][k]=(); R['resid'][k]=np.zeros(1)
        if len(c)==0: continue
        y=r[c]
        if np.ptp(y)==0: R['mu'][k]=y[0]; continue
        R['mu'][k]=y.mean()
        loo={}
        for nm,ids in nlev.items():
            u,inv=np.unique(ids[c],return_inverse=True); sm=np.bincount(inv,y); q=np.bincount(inv)
            R['tab'][k,nm]=(u,sm/q)
            loo[nm]=((sm[inv]-y)/np.maximum(q[inv]-1,1),q[inv]>1)
        best=None
        for ch in CH:
            pred=np.full(len(y),(y.sum()-y)/max(len(y)-1,1)) if False else (y.sum()-y)/max(len(y)-1,1)
            for nm in ch[::-1]:
                pred=np.where(loo[nm][1],loo[nm][0],pred)
            e=((y-pred)**2).mean()
            if best is None or e<best[0]*(1-1e-9): best=(e,ch,y-pred)
        R['chain'][k]=best[1]; R['resid'][k]=best[2] if best[0]>1e-18*np.mean(y**2) else np.zeros(1)
    n=m['n']; tiny=1e-20*max(float((r**2).max()),1e-300)
    multi=n>=2; noisy=multi&(m['r2']>tiny)
    q=noisy.sum()/max(multi.sum(),1)
    own=np.where(noisy,m['r2']/np.maximum(n-1,1),0.0)
    R['noise']=np.where(multi,own,q*(own[noisy].mean() if noisy.any() else 0.0))
    return R

def predict_reward(m,p,o):
    R=m['rewardmodel']; S,O,A=m['S'],m['O'],m['A']
    shape=np.broadcast(p,o).shape; p=np.broadcast_to(p,shape).ravel().astype(np.int64); o=np.broadcast_to(o,shape).ravel().astype(np.int64)
    k=(o>=S).astype(int); out=R['mu'][k]
    for kk in (0,1):
        sel=np.flatnonzero(k==kk)
        if len(sel)==0: continue
        for nm in R['chain'][kk][::-1]:
            u,mean=R['tab'][kk,nm]
            ids={'p':p,'o':o,'so':(p//A)*O+o}[nm][sel]
            i=np.searchsorted(u,ids).clip(0,len(u)-1); hit=u[i]==ids
            out[sel[hit]]=mean[i[hit]]
    return out.reshape(shape)

def rows_for(m,pi):
    """pairs with pi>0 and seen cells among them"""
    A=m['A']; p=np.flatnonzero(pi.ravel()>0); return p

def mean_model(m,pi,gamma,w,v=None,tilt=None):
    """Mean MDP: P_pi dense S x S and r_pi, with rows (n + w b_s)/(n+w), b_s=(ns+v g)/(Ns+v)"""
    S,A,O=m['S'],m['A'],m['O']; v=m['vbar'] if v is None else v
    pp=pi.ravel()
    wt=np.where(pp>0,pp/(m['npair']+w),0)  # per pair
    cw=wt[m['cp']]*m['n']
    P=np.zeros((S,O)); np.add.at(P,(m['cs'],m['co']),cw)
    r=np.bincount(m['cs'],cw*m['r'],S)
    bshare=(w*wt).reshape(S,A).sum(1)
    B=np.zeros((S,O)); B[m['ss'],m['so']]=m['ns']; B+=v*m['g']; B/= (m['Ns']+v)[:,None]
    P+=bshare[:,None]*B
    # reward on base: exact over state cells, g part by state-free prediction
    act=np.flatnonzero((w*wt)>0)
    simple=all('p' not in R_ for R_ in m['rewardmodel']['chain'].values())
    if simple:
        rs=predict_reward(m,m['ss']*A,m['so']); rg=predict_reward(m,np.arange(S)[:,None]*A,np.flatnonzero(m['g']>0)[None]) if S<800 else 0
        rb=(np.bincount(m['ss'],m['ns']*rs,S)+v*(rg@m['g'][m['g']>0]))/(m['Ns']+v)
        r=r+bshare*rb
    else:
        sp_=act//A
        # pairs x state cells
        cnt=np.bincount(m['ss'],minlength=S); off=np.concatenate([[0],np.cumsum(cnt)])
        rep=cnt[sp_]; pr=np.repeat(act,rep); idx=np.arange(rep.sum())-np.repeat(np.cumsum(rep)-rep,rep)+np.repeat(off[sp_],rep)
        val=m['ns'][idx]*predict_reward(m,pr,m['so'][idx])
        tot=np.bincount(np.repeat(np.arange(len(act)),rep),val,len(act))
        top=np.argsort(-m['g'])[:40]; gg=m['g'][top]/m['g'][top].sum()
        tot=tot+v*(predict_reward(m,act[:,None],top[None])@gg)
        tot/= (m['Ns'][sp_]+v)
        r=r+np.bincount(sp_,(w*wt)[act]*tot,S)
    return P,r,B

def solve_mean(P,r,gamma):
    S=len(r); M=np.eye(S)-gamma*P[:,:S]
    Minv=np.linalg.inv(M); return Minv, Minv@r

def tilt_estimate(m,pi,gamma,V,L,d,w,opt):
    """posterior mean and cov of lambda (2,) in standardised feature units; returns features f (O,2)."""
    S,A,O=m['S'],m['A'],m['O']
    Vn=np.zeros(O); Vn[:S]=gamma*V; Ln=np.zeros(O); Ln[:S]=gamma*L
    cp,co,cs,n=m['cp'],m['co'],m['cs'],m['n']
    kk=(np.arange(O)>=S).astype(int); seen_o=np.bincount(co,n,O); Vn+=np.where(seen_o>0,np.bincount(co,n*m['r'],O)/np.maximum(seen_o,1),m['rewardmodel']['mu'][kk]); Ln+=1
    F=np.stack([Vn,Ln],1) if opt.get('two',True) else Vn[:,None]
    Fc=np.stack([gamma*np.where(co<S,V[np.minimum(co,S-1)],0)+m['r'],Ln[co]],1) if opt.get('two',True) else (gamma*np.where(co<S,V[np.minimum(co,S-1)],0)+m['r'])[:,None]
    b_hat=np.zeros(S*A); Ns=m['Ns']; b_hat=np.where(Ns.repeat(A)>0,m['npair']/np.maximum(Ns.repeat(A),1),0)
    x=pi.ravel()-b_hat
    v=m['vbar']
    # pair sums of f, state sums
    nf=np.stack([np.bincount(cp,n*Fc[:,j],S*A) for j in range(F.shape[1])],1)
    sf=np.stack([np.bincount(cs,n*Fc[:,j],S) for j in range(F.shape[1])],1)
    gf=m['g']@F
    seen=np.flatnonzero(m['npair']>0)
    st=seen//A; npr=m['npair'][seen]; No=Ns[st]-npr
    fb=(sf[st]-nf[seen]+v*gf)/(No+v)[:,None]
    D=nf[seen]/npr[:,None]-fb
    # state covariance of f
    k=F.shape[1]
    sff=np.zeros((S,k,k))
    for i in range(k):
        for j in range(k):
            sff[:,i,j]=np.bincount(cs,n*Fc[:,i]*Fc[:,j],S)
    gff=np.einsum('o,oi,oj->ij',m['g'],F,F)
    mb=(sf+v*gf)/(Ns+v)[:,None]
    C=(sff+v*gff)/(Ns+v)[:,None,None]-mb[:,:,None]*mb[:,None,:]
    neff=1/(1/npr+1/(w+1)+1/(No+v))
    use=No>0
    rel=np.ones(len(seen))
    if opt.get('relev'): 
        db=Ns/Ns.sum(); rel=(d/np.maximum(db,1e-12))[st]; rel=np.minimum(rel/np.average(rel,weights=neff*x[seen]**2+1e-300),5)
    wts=neff*use*rel
    xs=x[seen]
    score=np.einsum('p,pi->i',wts*xs,D)
    info=np.einsum('p,pij->ij',wts*xs**2,C[st])
    Cbar=np.einsum('p,pij->ij',npr,C[st])/npr.sum()
    # directions in which outcomes differ at all (a generalised g-prior, invariant to the basis of f)
    tau=opt.get('tau',0.5)
    scale=np.sqrt(np.maximum(np.diag(Cbar),1e-300)); Cs=Cbar/np.outer(scale,scale)
    alive=np.diag(Cbar)>1e-10*np.maximum((F**2).max(0),1e-300); Cs=np.where(np.outer(alive,alive),Cs,0)
    ev,U=np.linalg.eigh(Cs); good=ev>1e-6
    T=(U[:,good]/np.sqrt(ev[good]))/scale[:,None]
    prec=T.T@info@T+np.eye(good.sum())/tau**2
    c=np.linalg.inv(prec) if good.any() else np.zeros((0,0))
    half=T@np.linalg.cholesky(c) if good.any() else np.zeros((k,0)); cov=half@half.T; lam=cov@score
    return lam,(cov,half),F,x,C,mb

def sample_values(m,pi,gamma,draws,seed,opt):
    rng=np.random.default_rng(seed)
    S,A,O=m['S'],m['A'],m['O']
    wbar=np.exp((m['wpost']*np.log(m['wgrid'])).sum()); vbar=m['vbar']
    P,r,B=mean_model(m,pi,gamma,wbar)
    Minv,V=solve_mean(P,r,gamma)
    L=Minv.sum(1)
    start=m['starts']/m['starts'].sum(); d=start@Minv
    tilted=opt.get('tilt',False)
    if tilted:
        for it in range(opt.get('iters',1)):
            lam,cov,F,x,C,mb=tilt_estimate(m,pi,gamma,V,L,d,wbar,opt)
        cov,chol=cov
    p=rows_for(m,pi); st=p//A; pip=pi.ravel()[p]; R=len(p)
    where=np.full(S*A,-1); where[p]=np.arange(R)
    cell=np.flatnonzero(where[m['cp']]>=0); crow=where[m['cp'][cell]]; cout=m['co'][cell]; cn=m['n'][cell]; cr=m['r'][cell]
    crsd=np.sqrt(m['rewardmodel']['noise'][cell]/cn)
    K=opt.get('K',8); J=3
    # state-level cell arrays sorted by state already (sk sorted)
    nss=len(m['ss'])
    vals=np.empty((draws,)); Vs=np.empty((draws,S)) if opt.get('keep') else None
    g_cum=np.cumsum(m['g'])
    # group atoms
    res=m['rewardmodel']['resid']
    systems=[]
    startdraw=rng.gamma(np.maximum(m['starts'],0)*1.0,size=(draws,S)) if opt.get('startdraw',True) and m['starts'].sum()>1.5 else np.tile(start,(draws,1))
    startdraw/=startdraw.sum(1,keepdims=True)
    stab=opt.get('tables','ml')
    for dd in range(draws):
        w=rng.choice(m['wgrid'],p=m['wpost']); v=rng.choice(m['vgrid'],p=m['vpost'])
        # tables at state level
        if w>=50: t=m['ns']
        else:
            bm=(m['ns']+v*m['g'][m['so']])/(m['Ns'][m['ss']]+v)
            a=w*bm[m['sinv']]
            tc=a*(digamma(a+m['n'])-digamma(a))
            t=np.bincount(m['sinv'],tc,nss)
        wt=np.concatenate([rng.gamma(t), rng.gamma(v/J,size=S*J)])
        # order: state cells then J g-atoms per state
        gout=np.searchsorted(g_cum,rng.random(S*J)*g_cum[-1]).clip(0,O-1)
        osrc=np.concatenate([m['so'],gout]); ssrc=np.concatenate([m['ss'],np.repeat(np.arange(S),J)])
        order=m.setdefault('_order',np.argsort(ssrc,kind='stable'))
        wt=wt[order]+1e-300; osrc=osrc[order]; ssrc=ssrc[order]
        cum=np.cumsum(wt); endi=np.searchsorted(ssrc,np.arange(S),side='right'); 
        hi=cum[endi-1]; lo=np.concatenate([[0],hi[:-1]])
        wp=w/(1-(w+1)/K) if K>1.5*(w+1) else 3*w+0.0
        u=lo[st][:,None]+rng.random((R,K))*(hi-lo)[st][:,None]
        ao=osrc[np.searchsorted(cum,u).clip(0,len(cum)-1)]
        shape=np.full((R,K),wp/K)
        pr=predict_reward(m,p[:,None],ao)
        term=ao>=S
        if tilted:
            lamd=lam+chol@rng.standard_normal(chol.shape[1])
            if opt.get('exact',True):
                fa=gamma*np.where(term,0,V[np.minimum(ao,S-1)])+pr
                h=lamd[0]*fa+(lamd[1]*F[ao,1] if len(lamd)>1 else 0)
                tl=x[p][:,None]*(h-(mb[st]@lamd)[:,None])
                tl=np.exp(np.clip(tl,-4,4)); tl/=tl.mean(1,keepdims=True)
                shape=shape*tl
        ga=rng.gamma(shape)
        # total base mass must be gamma(w): rescale
        tot=ga.sum(1); base=rng.gamma(w,size=R)
        ga*= (base/np.maximum(tot,1e-300))[:,None]
        gc=rng.gamma(cn)
        tots=np.bincount(crow,gc,R)+base
        tots=np.maximum(tots,1e-300)
        fac=pip/tots
        cw=gc*fac[crow]; aw=ga*fac[:,None]
        rr=np.bincount(st[crow],cw*(cr+crsd*rng.standard_normal(len(cr))),S)
        if np.any(res[0]): pr=pr+np.where(term,0,rng.choice(res[0],size=ao.shape))
        if np.any(res[1]): pr=pr+np.where(term,rng.choice(res[1],size=ao.shape),0)
        rr+=np.bincount(st,(aw*pr).sum(1),S)
        srow=np.concatenate([st[crow],np.repeat(st,K)]); scol=np.concatenate([cout,ao.ravel()]); sw=np.concatenate([cw,aw.ravel()])
        keep=scol<S
        Pm=sp.coo_matrix((sw[keep],(srow[keep],scol[keep])),shape=(S,S)).tocsr()
        x0=V.copy(); ok=False
        for it in range(60):
            rs=rr-x0+gamma*(Pm@x0)
            x0=x0+Minv@rs
            e=abs(rs).max()
            if e<1e-7*(1+abs(x0).max()): ok=True; break
            if not np.isfinite(e) or e>1e6*(1+abs(V).max()): break
        if not ok:
            x0=np.linalg.solve((1+1e-9)*np.eye(S)-gamma*Pm.toarray(),rr)
        vals[dd]=startdraw[dd]@x0
        if Vs is not None: Vs[dd]=x0
    info=dict(w=wbar,v=vbar)
    if tilted: info['lam']=lam*1.0; info['lamsd']=np.sqrt(np.diag(cov))
    return (vals,info) if Vs is None else (vals,info,Vs)
