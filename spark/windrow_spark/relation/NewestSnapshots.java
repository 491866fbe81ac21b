package windrow;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * Lets tables of a catalog follow what their own application has written since they were analysed, as
 * Spark's tables do. It runs among the optimizer's rules, before a query asks for partitions; what
 * comes later reads the snapshot that is chosen here.
 */
final class NewestSnapshots extends Rule {
    @Override
    public TreeNode apply(TreeNode plan) {
        return plan.transform(new Replacing());
    }

    private static final class Replacing extends AbstractPartialFunction {
        @Override
        public boolean isDefinedAt(Object node) {
            if (!TableStrategy.isOurs(node)) return false;
            return indexOf((LogicalRelation) node).isOpen();
        }

        @Override
        public Object applyOrElse(Object node, Function1 other) {
            if (!isDefinedAt(node)) return other.apply(node);
            LogicalRelation leaf = (LogicalRelation) node;
            HadoopFsRelation files = (HadoopFsRelation) leaf.relation();
            Object[] arguments = new Object[leaf.productArity()];
            for (int i = 1; i < arguments.length; i++) arguments[i] = leaf.productElement(i);
            arguments[0] = new HadoopFsRelation(
                newest(indexOf(leaf)), files.partitionSchema(), files.dataSchema(),
                files.bucketSpec(), files.fileFormat(), files.options(), files.sparkSession());
            return leaf.makeCopy(arguments);
        }

        private static TableIndex indexOf(LogicalRelation leaf) {
            return (TableIndex) ((HadoopFsRelation) leaf.relation()).location();
        }

        private static TableIndex newest(TableIndex index) {
            SparkSession session = (SparkSession) SparkSession.active();
            ObjectNode request = TableIndex.request("newest");
            String last = session.sparkContext().getLocalProperty("spark.windrow.lastChange");
            if (last != null) request.put("last", Integer.parseInt(last));
            List answer = (List) index.answer(request, session);
            if (answer == null) return index.settled();
            return index.moved(
                (String) answer.get(0), (String) answer.get(1), ((Number) answer.get(2)).longValue());
        }
    }
}
